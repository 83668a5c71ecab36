/* tests/unit/name/test_name.c - sanitized form, key, and stored ids. */
#include <stdlib.h>
#include <string.h>

#include "helper/random.h"
#include "helper/test.h"
#include "holdfast/name.h"

/* Names that lie close together are the hard ones: a small alphabet half of the time. */
static size_t random_name(char *to, size_t min, size_t max)
{
	static const char near[] = "ab%/._-25FfA \\";
	size_t len = min + random_u64() % (max - min + 1);
	int all = (int)(random_u64() & 1);

	for (size_t i = 0; i < len; i++)
		to[i] = all ? (char)random_u64() : near[random_u64() % (sizeof(near) - 1)];
	return len;
}

static int is_plain(char c)
{
	return c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", c);
}

/* -- sanitize ----------------------------------------------------------------- */

static void assert_sanitized(const char *name, size_t len, const char *expected)
{
	char out[256];

	assert_int_equal(hf_name_sanitize(name, len, out, sizeof(out)), strlen(expected));
	assert_string_equal(out, expected);
}

static void sanitize_gives_the_values_neighbours_rely_on(void **state)
{
	(void)state;
	assert_sanitized("my-session_01", 13, "my-session_01");
	assert_sanitized("../../etc/passwd", 16, "______etc_passwd");
	assert_sanitized("abc\nid=evil", 11, "abc_id_evil");
	assert_sanitized("   ", 3, "___");
	assert_sanitized("", 0, "unknown");
	assert_sanitized(NULL, 0, "unknown");
	assert_sanitized(NULL, 5, "unknown");
	assert_sanitized("a\0b", 3, "a_b");
	assert_sanitized("\xc3\xa9", 2, "__");
	assert_sanitized("a/b", 3, "a_b");
}

static void sanitize_keeps_length_and_plain_bytes(void **state)
{
	char name[128], out[129];

	(void)state;
	for (int i = 0; i < 50000; i++) {
		size_t len = random_name(name, 1, sizeof(name));

		assert_int_equal(hf_name_sanitize(name, len, out, sizeof(out)), len);
		assert_int_equal(strlen(out), len);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(out[k], is_plain(name[k]) ? name[k] : '_');
	}
}

static void sanitize_is_idempotent(void **state)
{
	char name[128], once[129], twice[129];

	(void)state;
	for (int i = 0; i < 50000; i++) {
		size_t len = hf_name_sanitize(name, random_name(name, 0, sizeof(name)), once,
					      sizeof(once));

		assert_int_equal(hf_name_sanitize(once, len, twice, sizeof(twice)), len);
		assert_string_equal(once, twice);
	}
}

static void sanitize_cuts_as_snprintf_does(void **state)
{
	static const char name[] = "a/b.c d";
	char out[16];

	(void)state;
	assert_int_equal(hf_name_sanitize(name, 7, NULL, 0), 7);
	assert_int_equal(hf_name_sanitize(NULL, 0, NULL, 0), strlen("unknown"));
	for (size_t cap = 1; cap < sizeof(out); cap++) {
		size_t fits = cap > 7 ? 7 : cap - 1;

		memset(out, '#', sizeof(out));
		assert_int_equal(hf_name_sanitize(name, 7, out, cap), 7);
		assert_memory_equal(out, "a_b_c_d", fits);
		assert_int_equal(out[fits], '\0');
		assert_int_equal(out[fits + 1 < sizeof(out) ? fits + 1 : 15], '#');
	}
	assert_int_equal(hf_name_sanitize("", 0, out, 4), 7);
	assert_string_equal(out, "unk");
}

/* -- key ---------------------------------------------------------------------- */

struct sample {
	size_t len;
	char name[HF_NAME_MAX];
	char key[HF_NAME_KEY_MAX];
};

static void check_key_is_a_harmless_file_name(const struct sample *s, int len)
{
	assert_true(len >= 1 && len <= 240);
	assert_int_equal(strlen(s->key), len);
	for (int i = 0; i < len; i++)
		assert_true(is_plain(s->key[i]) || s->key[i] == '%');
	/* Said by the alphabet already; said again because these are the ones that bite. */
	assert_null(strpbrk(s->key, "/\\.\n\r\t "));
	assert_string_not_equal(s->key, "");
	assert_string_not_equal(s->key, ".");
	assert_string_not_equal(s->key, "..");
}

static void check_unkey_gives_the_name_back(const struct sample *s, int key_len)
{
	char name[HF_NAME_MAX + 1];

	memset(name, '#', sizeof(name));
	assert_int_equal(hf_name_unkey(s->key, (size_t)key_len, name, ERR), s->len);
	assert_memory_equal(name, s->name, s->len);
	assert_int_equal(name[s->len], '\0');
}

static void fill_sample(struct sample *s)
{
	int len = hf_name_key(s->name, s->len, s->key, ERR);

	ASSERT_OK(len);
	check_key_is_a_harmless_file_name(s, len);
	check_unkey_gives_the_name_back(s, len);
}

static int by_key(const void *a, const void *b)
{
	return strcmp((*(struct sample *const *)a)->key, (*(struct sample *const *)b)->key);
}

#define ALL_SHORT (256 + 65536)
#define RANDOM    220000

static void make_samples(struct sample *samples)
{
	for (unsigned i = 0; i < ALL_SHORT + RANDOM; i++) {
		struct sample *s = &samples[i];

		if (i < 256) {
			s->name[0] = (char)i;
			s->len = 1;
		} else if (i < ALL_SHORT) {
			s->name[0] = (char)((i - 256) >> 8);
			s->name[1] = (char)(i - 256);
			s->len = 2;
		} else {
			s->len = random_name(s->name, 1, i % 8 ? 12 : HF_NAME_MAX);
		}
		fill_sample(s);
	}
}

static void different_names_have_different_keys_L12(void **state)
{
	const size_t n = ALL_SHORT + RANDOM;
	struct sample *samples = calloc(n, sizeof(*samples));
	struct sample **sorted = calloc(n, sizeof(*sorted));
	size_t distinct = 1;

	(void)state;
	assert_non_null(samples);
	assert_non_null(sorted);
	make_samples(samples);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &samples[i];
	qsort(sorted, n, sizeof(*sorted), by_key);
	for (size_t i = 1; i < n; i++) {
		const struct sample *a = sorted[i - 1], *b = sorted[i];

		if (strcmp(a->key, b->key) != 0) {
			distinct++;
			continue;
		}
		/* The same key: then it was drawn twice. */
		assert_int_equal(a->len, b->len);
		assert_memory_equal(a->name, b->name, a->len);
	}
	assert_true(distinct >= 200000);
	free(sorted);
	free(samples);
}

static void assert_key(const char *name, size_t len, const char *expected)
{
	char key[HF_NAME_KEY_MAX];

	assert_int_equal(hf_name_key(name, len, key, ERR), strlen(expected));
	assert_string_equal(key, expected);
}

static void keys_are_those_of_the_manual(void **state)
{
	(void)state;
	assert_key("fix-160", 7, "fix-160");
	assert_key("a/b", 3, "a%2Fb");
	assert_key("a_b", 3, "a_b");
	assert_key("ab", 2, "ab");
	assert_key("../../etc/passwd", 16, "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd");
	assert_key(".", 1, "%2E");
	assert_key("..", 2, "%2E%2E");
	assert_key("%2F", 3, "%252F");
	assert_key("a\0b", 3, "a%00b");
	assert_key("\xff\n", 2, "%FF%0A");
}

static void eighty_bytes_are_a_name_and_eighty_one_are_not(void **state)
{
	char name[2 * HF_NAME_MAX], key[HF_NAME_KEY_MAX], back[HF_NAME_MAX + 1];

	(void)state;
	for (int c = 0; c < 256; c++) {
		int len;

		memset(name, c, sizeof(name));
		len = hf_name_key(name, 80, key, ERR);
		assert_int_equal(len, is_plain((char)c) ? 80 : 240);
		assert_int_equal(hf_name_unkey(key, (size_t)len, back, ERR), 80);
		assert_memory_equal(back, name, 80);
		memset(key, '#', sizeof(key));
		ASSERT_ERR(hf_name_key(name, 81, key, ERR), HF_E_NAME);
		ASSERT_ERR(hf_name_key(name, sizeof(name), key, ERR), HF_E_NAME);
		assert_int_equal(key[0], '#');
	}
}

static void no_name_at_all_has_no_key(void **state)
{
	char key[HF_NAME_KEY_MAX] = "#";
	struct hf_err err = HF_ERR_INIT;

	(void)state;
	ASSERT_ERR(hf_name_key("", 0, key, &err), HF_E_NAME);
	assert_int_equal(err.code, HF_E_NAME);
	ASSERT_ERR(hf_name_key(NULL, 0, key, NULL), HF_E_NAME);
	ASSERT_ERR(hf_name_key(NULL, 3, key, NULL), HF_E_NAME);
	assert_string_equal(key, "#");
}

/* A name that is refused is shown; what it holds must not forge the message. */
static void refused_name_is_shown_sanitized(void **state)
{
	struct hf_err err = HF_ERR_INIT;
	char name[HF_NAME_MAX + 20], key[HF_NAME_KEY_MAX];

	(void)state;
	memset(name, '\n', sizeof(name));
	ASSERT_ERR(hf_name_key(name, sizeof(name), key, &err), HF_E_NAME);
	assert_int_equal(strlen(err.subject), HF_NAME_MAX);
	assert_int_equal(strspn(err.subject, "_"), HF_NAME_MAX);
}

static void refuse_key(const char *key, size_t len)
{
	char out[HF_NAME_MAX + 1];
	struct hf_err err = HF_ERR_INIT;

	memset(out, '#', sizeof(out));
	ASSERT_ERR(hf_name_unkey(key, len, out, &err), HF_E_STORED_ID);
	assert_int_equal(err.code, HF_E_STORED_ID);
	for (size_t i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], '#');
}

static void only_what_key_writes_is_a_key_L12(void **state)
{
	static const char *const bad[] = {
		"", "%2f", "%aF", "%41", "%5F", "%2D", "%30", "a.b", ".", "..", "a/b", "/", "a b",
		"a\\b", "%", "%2", "a%", "a%2", "%%", "%2G", "%G2", "%%41", "% 2", "%+2", "%-1",
		"%0x", "%2F%", "a\n", "\x7f", "\xff", "%2F/", "%u0041", "~", "a:b",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		refuse_key(bad[i], strlen(bad[i]));
	refuse_key(NULL, 0);
	refuse_key(NULL, 3);
	refuse_key("a\0b", 3);
	refuse_key("%2F", 2); /* the digit is there, but not ours to read */
	refuse_key("%2F", 1);
	refuse_key("%2\0", 3);
}

static void encoded_plain_bytes_are_no_key(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";
		char key[3] = { '%', upper[c >> 4], upper[c & 15] };
		char name[HF_NAME_MAX + 1];

		if (is_plain((char)c)) {
			refuse_key(key, 3);
		} else {
			assert_int_equal(hf_name_unkey(key, 3, name, ERR), 1);
			assert_int_equal((unsigned char)name[0], c);
		}
		key[1] = lower[c >> 4];
		key[2] = lower[c & 15];
		if (memcmp(key + 1, (char[]){ upper[c >> 4], upper[c & 15] }, 2) != 0)
			refuse_key(key, 3);
	}
}

static void key_of_more_than_eighty_bytes_is_refused(void **state)
{
	char key[4 * HF_NAME_MAX];

	(void)state;
	memset(key, 'a', sizeof(key));
	for (size_t len = 81; len < sizeof(key); len++)
		refuse_key(key, len);
	for (size_t i = 0; i + 3 <= sizeof(key); i += 3)
		memcpy(key + i, "%2F", 3);
	refuse_key(key, 243);
	refuse_key(key, 241);
}

static void whatever_unkey_accepts_is_the_key_of_its_name(void **state)
{
	static const char pieces[] = "%%%%02345FfAaz_-./";
	int accepted = 0;

	(void)state;
	for (int i = 0; i < 400000; i++) {
		char text[12], name[HF_NAME_MAX + 1], key[HF_NAME_KEY_MAX];
		size_t len = random_u64() % sizeof(text);
		int n;

		for (size_t k = 0; k < len; k++)
			text[k] = i & 1 ? (char)random_u64()
					: pieces[random_u64() % (sizeof(pieces) - 1)];
		n = hf_name_unkey(text, len, name, NULL);
		if (n < 0)
			continue;
		accepted++;
		assert_int_equal(hf_name_key(name, (size_t)n, key, ERR), len);
		assert_memory_equal(key, text, len);
	}
	/* Or the loop proved nothing. */
	assert_true(accepted > 1000);
}

/* -- stored ids ------------------------------------------------------------- */

static void refuse_stored(const char *id, size_t len)
{
	struct hf_err err = HF_ERR_INIT;

	ASSERT_ERR(hf_name_check_stored(id, len, &err), HF_E_STORED_ID);
	assert_int_equal(err.code, HF_E_STORED_ID);
	assert_string_not_equal(err.detail, "");
}

static void stored_id_that_could_walk_is_refused_L12(void **state)
{
	static const char *const bad[] = {
		"", "/", "a/b", "/a", "a/", "..", "a..b", "../x", "x..", "...", "a\nb", "\x1b[2J",
		"a\tb", "\x7f", "a\x7f",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		refuse_stored(bad[i], strlen(bad[i]));
	refuse_stored(NULL, 0);
	refuse_stored(NULL, 4);
	refuse_stored("a\0b", 3);
	refuse_stored("\0", 1);
}

static void stored_id_is_judged_byte_by_byte(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		const char ids[4][3] = { { (char)c }, { (char)c, 'x' }, { 'x', (char)c },
					 { 'x', (char)c, 'x' } };
		static const size_t lens[] = { 1, 2, 2, 3 };
		int bad = c < 0x20 || c == 0x7f || c == '/';

		for (size_t i = 0; i < 4; i++) {
			if (bad)
				refuse_stored(ids[i], lens[i]);
			else
				ASSERT_OK(hf_name_check_stored(ids[i], lens[i], ERR));
		}
	}
}

static void harmless_stored_ids_are_believed(void **state)
{
	static const char *const good[] = {
		"a", ".", "a.b", ".a.", "a b", "\xc3\xa9", "\xff\x80", "%2F", "fix-160", "~", "\\",
		". .",
	};
	char longest[4096];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		ASSERT_OK(hf_name_check_stored(good[i], strlen(good[i]), ERR));
	memset(longest, 'a', sizeof(longest));
	ASSERT_OK(hf_name_check_stored(longest, sizeof(longest), ERR));
	/* The dot behind the length is not part of it. */
	ASSERT_OK(hf_name_check_stored("a..", 2, ERR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(sanitize_gives_the_values_neighbours_rely_on),
		HF_TEST(sanitize_keeps_length_and_plain_bytes),
		HF_TEST(sanitize_is_idempotent),
		HF_TEST(sanitize_cuts_as_snprintf_does),
		HF_TEST(different_names_have_different_keys_L12),
		HF_TEST(keys_are_those_of_the_manual),
		HF_TEST(eighty_bytes_are_a_name_and_eighty_one_are_not),
		HF_TEST(no_name_at_all_has_no_key),
		HF_TEST(refused_name_is_shown_sanitized),
		HF_TEST(only_what_key_writes_is_a_key_L12),
		HF_TEST(encoded_plain_bytes_are_no_key),
		HF_TEST(key_of_more_than_eighty_bytes_is_refused),
		HF_TEST(whatever_unkey_accepts_is_the_key_of_its_name),
		HF_TEST(stored_id_that_could_walk_is_refused_L12),
		HF_TEST(stored_id_is_judged_byte_by_byte),
		HF_TEST(harmless_stored_ids_are_believed),
	};

	return hf_run_tests("name", tests);
}
