"""The derivative of the tree of a formula with respect to one of its names."""

from mpilbm.core.formulas.trees import Tree, names_of

ONE_BRANCH = {  # f -> f'(a), the derivative of a function of one branch
    "sin": lambda a: ("cos", a),
    "cos": lambda a: ("neg", ("sin", a)),
    "tan": lambda a: ("+", 1, ("**", ("tan", a), 2)),
    "exp": lambda a: ("exp", a),
    "log": lambda a: ("/", 1, a),
    "sqrt": lambda a: ("/", 0.5, ("sqrt", a)),
    "tanh": lambda a: ("-", 1, ("**", ("tanh", a), 2)),
    "abs": lambda a: ("where", (">", a, 0), 1, ("where", ("<", a, 0), -1, 0)),
}


def derivative(tree: Tree, name: str) -> Tree:
    """d tree / d name.

    Of `where`, `min` and `max` the derivative is that of the branch that holds; a jump from one
    branch to the other has none.
    """
    if name not in names_of(tree):
        return 0
    if not isinstance(tree, tuple):
        return 1
    operation, *branches = tree
    if operation == "where":
        return "where", branches[0], *(derivative(each, name) for each in branches[1:])
    if operation == "**":
        base, exponent = branches
        outer: Tree = ("*", exponent, ("**", base, exponent - 1)) if exponent != 1 else 1
        return "*", outer, derivative(base, name)
    inner = [derivative(each, name) for each in branches]
    if operation in ("+", "-", "neg"):
        return operation, *inner
    if operation in ("min", "max"):
        return _of_extreme(operation, branches, inner)
    a = branches[0]
    if operation == "*":
        return "+", ("*", inner[0], branches[1]), ("*", a, inner[1])
    if operation == "/":
        b = branches[1]
        return "/", ("-", inner[0], ("*", ("/", a, b), inner[1])), b
    return "*", ONE_BRANCH[operation](a), inner[0]


def _of_extreme(operation: str, branches: list[Tree], inner: list[Tree]) -> Tree:
    """The derivative of the first branch that is the least, or the largest, one."""
    found = inner[-1]
    for k in range(len(branches) - 2, -1, -1):
        rest = (operation, *branches[k + 1 :]) if k + 2 < len(branches) else branches[-1]
        holds = "<=" if operation == "min" else ">="
        found = ("where", (holds, branches[k], rest), inner[k], found)
    return found
