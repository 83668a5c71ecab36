# tests/examples/helper.bash - what the tests of examples/ load: the helpers of the CLI tests, and the Python module.
load ../cli/helper

EXAMPLES=$(cd "$BATS_TEST_DIRNAME/../../examples" && pwd)
tree=$(cd "$(dirname "$HOLDFAST")/.." && pwd)
export HOLDFAST HOLDFAST_LIBRARY="$tree/src/libholdfast.so.0" HOLDFAST_LIBEXEC="$tree/libexec"
PYTHONPATH=$(cd "$BATS_TEST_DIRNAME/../../bindings/python" && pwd)
unset AMPLIHACK_SESSION_ID CLAUDE_SESSION_ID CLAUDE_CODE_SESSION_ID CLAUDE_PROJECT_DIR GEMINI_SESSION_ID
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1

BOUND=60 # seconds, for a machine with twenty runnable processes on two processors
