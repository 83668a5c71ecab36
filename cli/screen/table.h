/*
 * cli/screen/table.h - tables whose columns fit their content, and whose rows fit the screen of a terminal.
 *
 *     struct table table = TABLE_INIT(columns, n);
 *     table_add(&table, cells, ...);      once for each row
 *     table_print(&cli, &table);
 *
 * Output to a pipe or a file is not cut, because another program reads it.
 */
#ifndef CLI_SCREEN_TABLE_H
#define CLI_SCREEN_TABLE_H

#include "cli.h"

#define TABLE_COLUMNS_MAX 16

struct table_row {
	struct hf_buf cells[TABLE_COLUMNS_MAX];
	struct hf_buf note; /* follows the last cell; on a narrow screen the cell is cut, not the note */
	/* Bytes at the end of the note that are cut last. If cell and note do not both fit, only the note is shown. */
	size_t note_end;
	enum hf_view_tone tone;
};

struct table {
	const struct hf_view_column *columns; /* all columns */
	const int *shown;                     /* indexes of the shown columns, in order */
	int n_shown;
	int toned;                            /* the coloured column; -1: none */
	const int *spare;                     /* columns that a narrow screen drops, in this order */
	int n_spare;
	int no_cut;
	struct table_row **rows;
	size_t n;
};

/* Makes a row with empty cells. */
struct table_row *table_row_new(void);
void table_row_free(struct table_row *row);

/* Appends the row. The table owns it from then on. */
void table_add(struct table *table, struct table_row *row);

/* Prints head and rows, at most `lines` lines (0: all). `end` precedes each newline ("", or a sequence that clears the line). */
void table_print(const struct cli *cli, const struct table *table, int lines, const char *end);

void table_done(struct table *table);

/* Adds at most `max` cells of the text (UTF-8 without control characters). The last cell marks a cut. Returns the number of cells. */
int table_cut(struct hf_buf *out, const char *text, int max);

/* Gets the size of the screen from COLUMNS and LINES, or from the terminal; the default is 80 and 24. */
void table_screen(int *ret_columns, int *ret_lines);

#endif
