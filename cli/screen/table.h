/*
 * cli/screen/table.h - rows that are as wide as what stands in them, and on a terminal no wider than the screen.
 *
 *     struct table table = TABLE_INIT(columns, n);
 *     table_add(&table, cells, ...);      once for each row
 *     table_print(&cli, &table);
 *
 * Into a pipe or a file nothing is cut: another program reads it.
 */
#ifndef CLI_SCREEN_TABLE_H
#define CLI_SCREEN_TABLE_H

#include "cli.h"

#define TABLE_COLUMNS_MAX 16

struct table_row {
	struct hf_buf cells[TABLE_COLUMNS_MAX];
	struct hf_buf note; /* stands behind the last cell; on a narrow screen the cell is cut, not the note */
	/* Bytes at the end of the note that are shown if anything is: where cell and note do not both fit, the note stands alone, and is cut before them. */
	size_t note_end;
	enum hf_view_tone tone;
};

struct table {
	const struct hf_view_column *columns; /* all there are */
	const int *shown;                     /* which of them, in this order */
	int n_shown;
	int toned;                            /* the column that has the tone; -1: none */
	const int *spare;                     /* those that a narrow screen does without, the first one first */
	int n_spare;
	int no_cut;
	struct table_row **rows;
	size_t n;
};

/* Makes a row; its cells are empty. */
struct table_row *table_row_new(void);
void table_row_free(struct table_row *row);

/* Puts the row at the end, which owns it from then on. */
void table_add(struct table *table, struct table_row *row);

/* Head and rows; at most `lines` of them all (0: all). `end` stands before each newline ("", or what clears a line). */
void table_print(const struct cli *cli, const struct table *table, int lines, const char *end);

void table_done(struct table *table);

/* Adds at most `max` cells of the text, UTF-8 without control characters, the last of them a sign when something is left out. Returns how many. */
int table_cut(struct hf_buf *out, const char *text, int max);

/* The screen that standard output is: COLUMNS and LINES, else what the terminal says, else 80 and 24. */
void table_screen(int *ret_columns, int *ret_lines);

#endif
