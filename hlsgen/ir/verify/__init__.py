"""Whether a Model or a Graph is legal: the written rules of both forms.

`verify_model` and `verify_graph` give every violation of the rules, not the first alone. A legal form can be evaluated,
and every number that it holds twice (a shape, a range, a dtype) is the same in both places. Whether it computes what
the file says is not asked here: the interpreters answer that.

The rules stand where they are checked:

- `verify.elementwise`: constants, dtypes and parameters of elementwise operations and quantizers
- `verify.window`: windows, borders, slices and permutations, and the shapes that they give
- `verify.model`: the steps of a Model
- `verify.encoding`: what codes mean, and that no code leaves the range in which that is exact
- `verify.graph`: the layers of a Graph, and what the host does around them
"""

from hlsgen.ir.verify.graph import verify_graph
from hlsgen.ir.verify.model import verify_model
from hlsgen.ir.verify.violations import Violation

__all__ = ["Violation", "verify_graph", "verify_model"]
