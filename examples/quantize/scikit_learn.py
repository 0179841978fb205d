"""A classifier of scikit-learn, quantized and built: python scikit_learn.py FOLDER

Needs `scikit-learn`, `skl2onnx` and hlsgen's extra `oracle`. The tests run it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler

import hlsgen

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
images, labels = load_digits(return_X_y=True)
images = MinMaxScaler().fit_transform(images).astype(np.float32)
classifier = MLPClassifier((24,), max_iter=200, random_state=1).fit(images[:1400], labels[:1400])
exported = to_onnx(classifier, images[:1], options={"zipmap": False})
(folder / "float.onnx").write_bytes(exported.SerializeToString())

result = hlsgen.quantize(folder / "float.onnx", images[:300], folder / "quantized.onnx")
for output in result.outputs:
    print(f"{output.name}: largest difference {output.largest:.3g}")

# The label is chosen by operators of scikit-learn; the hardware gives the probabilities.
options = hlsgen.Options(outputs=["probabilities"])
build = hlsgen.build(folder / "quantized.onnx", folder / "build", options)
scores = hlsgen.run(folder / "build", images[1400:])
print(f"accuracy of the hardware: {(scores.argmax(-1) == labels[1400:]).mean():.1%}")
