"""Import of ALIR files, alkaid's programs of networks from HGQ2, Keras and PyTorch."""
