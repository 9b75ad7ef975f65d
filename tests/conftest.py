"""Options of pytest for this project; this folder holds the helpers of all tests."""

pytest_plugins = ["quick", "reporting"]
