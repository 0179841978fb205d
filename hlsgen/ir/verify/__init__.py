"""The rules that a legal Model or Graph obeys, and their checks.

`verify_model` and `verify_graph` return every violation, not only the first. A legal form can be evaluated, and
every number that it holds twice (a shape, a range, a dtype) is the same in both places. The interpreters
check that the form computes the same as the file.

The rules are documented where they are checked:

- `verify.elementwise`: constants, dtypes and parameters of elementwise operations and quantizers
- `verify.window`: windows, borders, slices and permutations, and the shapes of their results
- `verify.model`: the steps of a Model
- `verify.encoding`: encodings, and the code ranges in which decoding is exact
- `verify.graph`: the layers of a Graph
- `verify.host`: the host's steps before and after the layers
"""

from hlsgen.ir.verify.graph import verify_graph
from hlsgen.ir.verify.model import verify_model
from hlsgen.ir.verify.violations import Violation

__all__ = ["Violation", "verify_graph", "verify_model"]
