import copy
import tomllib

import pytest
from support.case_tables import tables, write

from mpilbm.case.case import load_case, parse_case
from mpilbm.case.typed_keys import override
from mpilbm.core import printable
from mpilbm.core.errors import CaseError
from mpilbm.core.printable import one_line

pytestmark = pytest.mark.usefixtures("stand_ins")


def test_overrides(tmp_path):
    case = load_case(
        write(tmp_path),
        [
            "run.steps=200",
            "domain.size=[6, 6, 6]",
            "title=plain words",
            "layout.name=aa",
            "body.ball.shape.radius=2",
            "boundary.1.velocity=[0.05, 0, 0]",
            "output.1={name = 'stand_in', every = 3}",
            "output.2.name=stand_in",
            "output.2.every=4",
            "initial.u=['0.01*x', 0, 0]",
        ],
    )
    assert (case.run.steps, case.domain.size, case.title) == (200, (6, 6, 6), "plain words")
    assert (case.layout.name, case.bodies[0].shape.radius) == ("aa", 2)
    assert case.boundaries[1].velocity == (0.05, 0, 0)
    assert [output.every for output in case.outputs] == [10, 3, 4]
    again = parse_case(tomllib.loads(case.toml), case.path)
    assert case.settings[0] == "run.steps=200"
    assert again == case.model_copy(update={"settings": ()})


def test_overrides_make_lists_and_leave_the_tables_alone():
    before = {"a": {"b": 1}}
    after, problems = override(before, ["c.0.d=1", "c.1.d=2", "a.b=x\ny = 1", "e=1\nf=2"])
    assert problems == []
    assert after == {"a": {"b": "x\ny = 1"}, "c": [{"d": 1}, {"d": 2}], "e": "1\nf=2"}
    assert before == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("run.steps", "is not key=value; write for example --set run.steps=100"),
        ("=3", "is not key=value"),
        ("run..steps=1", "a part of the path is empty"),
        ("run.steps.a=1", "'run.steps' is 5, not a table or list; set 'run.steps' itself"),
        ("boundary.3.name=a", "'boundary' has no entry '3'; allowed: 0 to 1; 2 appends one"),
        ("body.bal.label=a", "'body' has no entry 'bal'; allowed: 0, 'ball'; 1 appends one"),
        ("boundary.-1.name=a", "'boundary' has no entry '-1'"),
        ("domain.size.5=1", "'domain.size' has no entry '5'; allowed: 0 to 2; 3 appends one"),
        ("title=\udcff", "the value is not UTF-8"),
    ],
)
def test_bad_override(tmp_path, setting, sentence):
    with pytest.raises(CaseError) as error:
        load_case(write(tmp_path), ["run.steps=5", setting, "run=1"])
    (problem,) = error.value.problems
    assert problem.startswith(f"--set {one_line(setting)}: {sentence}")


def test_toml_text_is_read_back_equal():
    data = tables() | {
        "title": 'quotes " \\ \n\t\x00\x7f é 🙂',
        "a key": {"b.c": 1, "ключ": [[], {}, [{"a": -0.0}, 1]], "": {"x": {"y": False}}},
        "numbers": [1e-7, 1e22, 1.5, -3, 2**60, float("inf"), 0.1 + 0.2],
        "empty": [],
        "none": {},
    }
    assert tomllib.loads(printable.dumps(copy.deepcopy(data))) == data
    assert tomllib.loads(printable.dumps({})) == {}
