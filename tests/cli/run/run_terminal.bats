# run on a terminal: as if the command had been started alone, with its output logged or not.
load ../session_helper

terminal() {
    command -v python3 >/dev/null || skip "no python3"
    expect 0 env TERM=dumb python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" "$@"
    rm -f go up got pid
}

@test "the command has the terminal: stdin, output, size, controlling; with --log one of its own" {
    terminal is_a_terminal
    terminal is_a_terminal --log
    terminal is_a_terminal --idle 30s
    terminal is_a_terminal --no-log
    terminal is_a_terminal --log
    hf logs x | grep -q "LINE hello"
    terminal is_a_terminal
    hf logs x | grep -q "LINE hello"
}

@test "on a terminal a standard error that goes elsewhere still goes there, and the log tells both" {
    terminal error_goes_elsewhere
    [ "$(cat err)" = "to the file" ]
    hf logs x --stderr | grep -qx "to the file"
    hf logs x | grep -q "to the terminal"
}

@test "a stream that is a terminal while others are not stays that very one" {
    terminal only_output_is_a_terminal
    terminal only_error_is_a_terminal
}

@test "a change of the window's size arrives" {
    terminal is_resized
    terminal is_resized --log
    terminal is_resized --no-log
}

@test "Ctrl-C reaches the command once, and ends a command that does not handle it" {
    terminal ctrl_c_comes_once
    terminal ctrl_c_comes_once --log
    terminal ctrl_c_comes_once --no-log
}

@test "a command that exits 0 on Ctrl-C is interrupted, never a success (L14)" {
    terminal ctrl_c_is_never_a_success
    terminal ctrl_c_is_never_a_success --log
}

@test "a command that exits 0 on a TERM, HUP or INT to the whole group is stopped or interrupted, never a success (L14)" {
    # Without a log both are in one process group.
    terminal a_signal_to_the_group_is_never_a_success --no-log
    terminal a_signal_to_the_group_is_never_a_success --no-log --tree walk
    [ "$(events session_ended x)" = 6 ]
}

@test "Ctrl-Z stops it, the shell has the terminal meanwhile, fg goes on; twice" {
    terminal ctrl_z_stops_and_fg_goes_on
    terminal ctrl_z_stops_and_fg_goes_on --log
    terminal ctrl_z_stops_and_fg_goes_on --no-log
}

@test "a shell within the session has its own jobs" {
    terminal a_shell_within_has_its_own_jobs
    terminal a_shell_within_has_its_own_jobs --log
    terminal a_shell_within_has_its_own_jobs --no-log
}

@test "in the background of a shell it leaves the terminal alone and is not stopped by it" {
    terminal a_background_job_leaves_the_terminal_alone
    terminal a_background_job_leaves_the_terminal_alone --log
    terminal a_background_job_leaves_the_terminal_alone --no-log
}

@test "with --log the terminal's modes are put back: after the end, a TERM, the keeper's death" {
    terminal modes_are_put_back --log
}

@test "a long paste arrives whole" {
    terminal a_long_paste_arrives_whole
    terminal a_long_paste_arrives_whole --log
    terminal a_long_paste_arrives_whole --no-log
    terminal a_paste_faster_than_its_reader_arrives_whole --log
}

@test "Ctrl-C ends a loop that waits for its next attempt" {
    terminal ctrl_c_ends_a_loop_between_attempts
    terminal ctrl_c_ends_a_loop_between_attempts --log
    terminal ctrl_c_ends_a_loop_between_attempts --no-log
}

@test "a verifier has an ordinary terminal, and Ctrl-C ends it" {
    terminal a_verifier_has_an_ordinary_terminal
    terminal a_verifier_has_an_ordinary_terminal --log
    terminal a_verifier_has_an_ordinary_terminal --no-log
}

@test "a closed terminal ends the session, and the command gets HUP" {
    terminal a_closed_terminal_ends_it
    terminal a_closed_terminal_ends_it --log
    terminal a_closed_terminal_ends_it --no-log
}
