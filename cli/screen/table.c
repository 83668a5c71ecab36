/* cli/screen/table.c - fits columns to their content and to the screen. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "screen/table.h"

#define NAME_MIN_WIDTH 14 /* the first column is not cut to less than this */
#define LAST_MIN_WIDTH 24 /* nor is the last one, while the first can shrink */
#define NARROW         80 /* on a narrower screen spare columns are dropped, */
#define LAST_LEAST     16 /* until the last column has this width */
#define TEXT_MIN_WIDTH 8  /* minimum for the text before a note */

/* -- the width of text ----------------------------------------------------------------- */

/* The text is already safe for a terminal: UTF-8 without control characters. */
static int width_of(wchar_t c)
{
	int width = wcwidth(c);

	return width < 0 ? 1 : width;
}

/* Returns the number of bytes of `text` that fit into `max` cells; *ret_width is the number of cells used. */
static size_t fit(const char *text, int max, int *ret_width)
{
	mbstate_t state = { 0 };
	size_t at = 0, len = strlen(text);
	int width = 0;

	while (at < len) {
		wchar_t c;
		size_t n = mbrtowc(&c, text + at, len - at, &state);
		int more = n == 0 || n > len ? 1 : width_of(c);

		if (n == 0 || n > len) {
			n = 1;
			memset(&state, 0, sizeof(state));
		}
		if (width + more > max)
			break;
		width += more;
		at += n;
	}
	*ret_width = width;
	return at;
}

static int width_of_text(const char *text)
{
	int width;

	(void)fit(text, INT_MAX - 2, &width);
	return width;
}

/* Returns 1 if the user's locale is UTF-8. */
static int shows_utf8(void)
{
	const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return 0;
}

static void print_spaces(int n)
{
	if (n > 0)
		printf("%*s", n, "");
}

static int add_cut(struct hf_buf *out, const char *text, int max)
{
	int width;
	size_t n = fit(text, max, &width);

	if (!text[n]) {
		hf_buf_add_text(out, text);
		return width;
	}
	if (max <= 0)
		return 0;
	n = fit(text, max - 1, &width);
	hf_buf_add(out, text, n);
	hf_buf_add_text(out, shows_utf8() ? "\u2026" : "~");
	return width + 1;
}

/* Prints the text, cut to `max` cells. Returns the width. */
static int print_cut(const char *text, int max)
{
	AUTO(hf_buf_done) struct hf_buf cut = HF_BUF_INIT;
	int width = add_cut(&cut, text, max);

	if (cut.err)
		cli_die_oom();
	fwrite(cut.s ? cut.s : "", 1, cut.len, stdout);
	return width;
}

/* -- the screen --------------------------------------------------------------------------- */

static int positive(const char *text)
{
	uint64_t n;

	return text && hf_parse_u64(text, strlen(text), 100000, &n) == 0 ? (int)n : 0;
}

void table_screen(int *ret_columns, int *ret_lines)
{
	struct winsize size = { 0 };
	int columns = positive(getenv("COLUMNS")), lines = positive(getenv("LINES"));

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_columns = columns ? columns : size.ws_col ? size.ws_col : 80;
	*ret_lines = lines ? lines : size.ws_row ? size.ws_row : 24;
}

/* -- the table ---------------------------------------------------------------------------- */

struct table_row *table_row_new(void)
{
	struct table_row *row = calloc(1, sizeof(*row));

	if (!row)
		cli_die_oom();
	for (int i = 0; i < TABLE_COLUMNS_MAX; i++)
		row->cells[i] = (struct hf_buf)HF_BUF_INIT;
	row->note = (struct hf_buf)HF_BUF_INIT;
	return row;
}

void table_row_free(struct table_row *row)
{
	hf_view_cells_done(row->cells, TABLE_COLUMNS_MAX);
	hf_buf_done(&row->note);
	free(row);
}

void table_add(struct table *table, struct table_row *row)
{
	struct table_row **grown = reallocarray(table->rows, table->n + 1, sizeof(struct table_row *));

	if (!grown)
		cli_die_oom();
	table->rows = grown;
	grown[table->n++] = row;
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		table_row_free(table->rows[i]);
	free(table->rows);
	table->rows = NULL;
	table->n = 0;
}

/* Computes the widths of all columns but the last. Shrinks the first one down to its minimum in favour of the last. */
static void measure(const struct table *table, int screen, int *widths)
{
	int last = table->n_shown - 1, sum = 0, room;

	for (int i = 0; i < table->n_shown; i++) {
		widths[i] = width_of_text(table->columns[table->shown[i]].title);
		for (size_t k = 0; k < table->n; k++) {
			const struct hf_buf *cell = &table->rows[k]->cells[table->shown[i]];
			int width;

			if (cell->err)
				cli_die_oom();
			width = width_of_text(cell->s);
			if (width > widths[i])
				widths[i] = width;
		}
		if (i < last)
			sum += widths[i] + 2;
	}
	if (!screen || last == 0)
		return;
	room = screen - sum;
	if (room < LAST_MIN_WIDTH) {
		int give = widths[0] - NAME_MIN_WIDTH;

		if (give > LAST_MIN_WIDTH - room)
			give = LAST_MIN_WIDTH - room;
		widths[0] -= give > 0 ? give : 0;
	}
}

/* Drops spare columns on a narrow screen. `shown` and `widths` describe the remaining columns. */
static void spare_columns(struct table *table, int screen, int *shown, int *widths)
{
	memcpy(shown, table->shown, (size_t)table->n_shown * sizeof(*shown));
	table->shown = shown;
	measure(table, screen, widths);
	for (int i = 0; screen > 0 && screen < NARROW && i < table->n_spare; i++) {
		int room = screen, at = -1;

		for (int k = 0; k < table->n_shown - 1; k++) {
			room -= widths[k] + 2;
			at = shown[k] == table->spare[i] ? k : at;
		}
		if (room >= LAST_LEAST)
			return;
		if (at < 0)
			continue;
		memmove(shown + at, shown + at + 1, (size_t)(table->n_shown - at - 1) * sizeof(*shown));
		table->n_shown--;
		measure(table, screen, widths);
	}
}

/* Prints a note that does not fit next to its cell: the beginning is cut, the end is not. */
static void print_note_alone(const char *note, size_t end, int left)
{
	AUTO_FREE char *begin = NULL;
	size_t len;

	note += strspn(note, " ");
	len = strlen(note);
	begin = strndup(note, end < len ? len - end : 0);
	if (!begin)
		cli_die_oom();
	left -= print_cut(begin, left - width_of_text(note + strlen(begin)));
	(void)print_cut(note + strlen(begin), left);
}

/* Prints the last column in the rest of the line. */
static void print_last(const char *text, const char *note, size_t note_end, int left)
{
	int room = left - width_of_text(note);

	if (note_end > 0 && room < TEXT_MIN_WIDTH && room < width_of_text(text)) {
		print_note_alone(note, note_end, left);
		return;
	}
	if (room < TEXT_MIN_WIDTH)
		room = TEXT_MIN_WIDTH < left ? TEXT_MIN_WIDTH : left;
	left -= print_cut(text, room);
	(void)print_cut(note, left);
}

/* Prints one line, at most `screen` cells wide (0: no limit). */
static void print_line(const struct cli *cli, const struct table *table, const struct table_row *row, const int *widths,
		       int screen)
{
	int left = screen ? screen : INT_MAX / 2, last = table->n_shown - 1;

	for (int i = 0; i <= last && left > 0; i++) {
		const struct hf_view_column *column = &table->columns[table->shown[i]];
		const char *text = row ? row->cells[table->shown[i]].s : column->title;
		int toned = row && table->shown[i] == table->toned, room = widths[i] < left ? widths[i] : left;

		if (toned)
			cli_tone(cli, row->tone);
		if (i == last) {
			print_last(text, row ? row->note.s : "", row ? row->note_end : 0, left);
		} else {
			int width = width_of_text(text);
			int space = width < room ? room - width : 0;

			print_spaces(column->width > 0 ? space : 0);
			(void)print_cut(text, room);
			if (toned)
				cli_colour(cli, NULL);
			print_spaces(column->width > 0 ? 0 : space);
			if (left > room + 2)
				fputs("  ", stdout);
			left -= room + 2;
		}
		if (toned && i == last)
			cli_colour(cli, NULL);
	}
}

void table_print(const struct cli *cli, const struct table *given, int lines, const char *end)
{
	struct table fitted = *given, *table = &fitted;
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t old = utf8 ? uselocale(utf8) : (locale_t)0;
	int shown[TABLE_COLUMNS_MAX], widths[TABLE_COLUMNS_MAX], columns = 0, rows;

	table_screen(&columns, &rows);
	if (!cli->terminal || table->no_cut)
		columns = 0;
	spare_columns(table, columns, shown, widths);
	print_line(cli, table, NULL, widths, columns);
	printf("%s\n", end);
	for (size_t i = 0; i < table->n && (lines == 0 || (int)i + 1 < lines); i++) {
		print_line(cli, table, table->rows[i], widths, columns);
		printf("%s\n", end);
	}
	if (utf8) {
		(void)uselocale(old);
		freelocale(utf8);
	}
}

int table_cut(struct hf_buf *out, const char *text, int max)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t old = utf8 ? uselocale(utf8) : (locale_t)0;
	int width = add_cut(out, text, max);

	if (utf8) {
		(void)uselocale(old);
		freelocale(utf8);
	}
	return width;
}
