"""Arithmetic of TFLite's runtimes: tflite-micro, LiteRT's reference kernels, LiteRT with XNNPACK."""
