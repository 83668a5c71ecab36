/* file/block/style.c - comments by file type. */
#include <string.h>
#include <strings.h>

#include "hf/file/block/style.h"

static const struct {
	const char *open, *close;
} comments[] = {
	[HF_STYLE_HTML] = { "<!--", "-->" }, [HF_STYLE_HASH] = { "#", "" },
	[HF_STYLE_SLASH] = { "//", "" },     [HF_STYLE_DASH] = { "--", "" },
	[HF_STYLE_C] = { "/*", "*/" },
};

#define N_STYLES (sizeof(comments) / sizeof(comments[0]))

const char *hf_style_open(enum hf_block_style style)
{
	return (unsigned)style < N_STYLES ? comments[style].open : NULL;
}

const char *hf_style_close(enum hf_block_style style)
{
	return (unsigned)style < N_STYLES ? comments[style].close : NULL;
}

/* Words between blanks, the extensions of each style; what is missing here is '#'. */
static const struct {
	enum hf_block_style style;
	const char *extensions;
} types[] = {
	{ HF_STYLE_HTML, " md markdown mdown mkd mdx mdc rmd qmd html htm xhtml xml svg vue svelte xsl "
			 "plist csproj " },
	{ HF_STYLE_SLASH, " c h cc cpp cxx hh hpp js jsx mjs cjs ts tsx mts cts java kt kts go rs swift "
			  "scala groovy gradle dart cs fs php proto jsonc json5 zig v sv " },
	{ HF_STYLE_DASH, " sql lua hs elm adb ads vhd vhdl " },
	{ HF_STYLE_C, " css scss less " },
	{ HF_STYLE_AUTO, " json ndjson jsonl ipynb csv tsv lock " },
};

static const char fenced[] = " md markdown mdown mkd mdx mdc rmd qmd ";
static const char bare_markdown[] = " readme changelog contributing agents claude gemini ";

/* Is `word` one of the list's words, in whatever case? */
static int is_listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	if (len == 0 || strchr(word, ' '))
		return 0;
	for (const char *at = list; *at; at++)
		if (*at == ' ' && strncasecmp(at + 1, word, len) == 0 && at[len + 1] == ' ')
			return 1;
	return 0;
}

static const char *extension(const char *leaf)
{
	const char *dot = strrchr(leaf, '.');

	/* ".bashrc" has none. */
	return dot && dot != leaf ? dot + 1 : "";
}

enum hf_block_style hf_style_of(const char *leaf)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is_listed(types[i].extensions, extension(leaf)))
			return types[i].style;
	return is_listed(bare_markdown, leaf) ? HF_STYLE_HTML : HF_STYLE_HASH;
}

int hf_style_has_fences(const char *leaf)
{
	return is_listed(fenced, extension(leaf)) || is_listed(bare_markdown, leaf);
}

size_t hf_style_id_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && n < HF_BLOCK_ID_MAX &&
	       ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
		(s[n] >= '0' && s[n] <= '9') || s[n] == '_' || s[n] == '-' || s[n] == '.'))
		n++;
	return n;
}
