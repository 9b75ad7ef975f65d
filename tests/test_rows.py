"""Files of rows go on after a restart."""

from mpilbm.outputs.rows import Rows


def written(path, header, first, *rows):
    file = Rows(path, header, first)
    for step, value in rows:
        file.add(step, [value])
    file.close()
    return path.read_text().splitlines()


def test_rows_up_to_the_restart_are_kept(tmp_path):
    path = tmp_path / "monitor.csv"
    written(path, ["step", "mass"], 0, (1, 0.5), (2, 0.25), (3, 0.125))
    assert written(path, ["step", "mass"], 2, (3, 7)) == ["step,mass", "1,0.5", "2,0.25", "3,7.0"]


def test_rows_of_other_columns_are_put_aside_and_told(tmp_path, capsys):
    path = tmp_path / "monitor.csv"
    before = written(path, ["step", "mass"], 0, (1, 0.5), (2, 0.25))
    assert written(path, ["step", "energy"], 2, (3, 7)) == ["step,energy", "3,7.0"]
    aside = tmp_path / "monitor_before_000000002.csv"
    assert aside.read_text().splitlines() == before
    assert str(aside) in capsys.readouterr().err
