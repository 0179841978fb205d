"""Import of TFLite files: a reader of flatbuffers that trusts no byte, and operator rules that give the same Model."""
