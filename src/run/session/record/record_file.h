/* run/session/record/record_file.h - the file of a session's record, which store.c reads and save.c writes. */
#ifndef RUN_SESSION_RECORD_RECORD_FILE_H
#define RUN_SESSION_RECORD_RECORD_FILE_H

#define HF_SESSION_RECORD     "session.jsonl"
#define HF_SESSION_RECORD_NEW ".session.jsonl.new"
#define HF_SESSION_PUT_AWAY   ".session.jsonl.damaged" /* stands where the record is missing because it was put away */

/*
 * The file has this size from its birth, lines in front and zeros behind them: a line written
 * over zeros changes no metadata, which makes its sync a third cheaper. Full, it is made anew.
 */
#define HF_SESSION_RECORD_BYTES (64 * 1024)
#define HF_SESSION_PART_BYTES   (8 * 1024)

#endif
