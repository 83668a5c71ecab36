/* base/err.c - the list of codes at run time, and the line that people read. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/fail.h"

static const struct hf_err_info infos[] = {
#define HF_ERR_ROW(name, number, status, text) { number, status, #name, text },
	HF_ERR_LIST(HF_ERR_ROW)
#undef HF_ERR_ROW
};

#define N_INFOS (sizeof(infos) / sizeof(infos[0]))

_Static_assert(sizeof(struct hf_err) == 512, "struct hf_err is part of the ABI");

const struct hf_err_info *hf_err_at(size_t index)
{
	return index < N_INFOS ? &infos[index] : NULL;
}

const struct hf_err_info *hf_err_info(int code)
{
	for (size_t i = 0; i < N_INFOS; i++)
		if (infos[i].code == code)
			return &infos[i];
	return NULL;
}

int hf_err_exit_status(int code)
{
	const struct hf_err_info *info = hf_err_info(code);

	if (code >= 0)
		return 0;
	if (info)
		return info->exit_status;
	return code == -EINVAL ? 2 : 4;
}

void hf_copy_text(char *out, size_t cap, const char *text)
{
	size_t len = text ? strnlen(text, cap - 1) : 0;

	if (len > 0)
		memcpy(out, text, len);
	out[len] = '\0';
}

int hf_fail_sys(struct hf_err *err, int sys, const char *op, const char *subject)
{
	if (sys <= 0)
		sys = EIO;
	if (err) {
		err->code = -sys;
		err->sys = sys;
		hf_copy_text(err->op, sizeof(err->op), op);
		hf_copy_text(err->subject, sizeof(err->subject), subject);
		(void)snprintf(err->detail, sizeof(err->detail), "%s",
			       sys == EMFILE ? "this process has no descriptor left (RLIMIT_NOFILE)" :
			       sys == ENFILE ? "this machine has no open file left (fs.file-max)" : "");
	}
	return -sys;
}

int hf_fail(struct hf_err *err, int code, const char *op, const char *subject, const char *format,
	    ...)
{
	if (err) {
		va_list args;

		err->code = code;
		err->sys = 0;
		hf_copy_text(err->op, sizeof(err->op), op);
		hf_copy_text(err->subject, sizeof(err->subject), subject);
		va_start(args, format);
		(void)vsnprintf(err->detail, sizeof(err->detail), format, args);
		va_end(args);
	}
	return code;
}

int hf_err_wrap(struct hf_err *err, int code, const char *kind, const char *name)
{
	char context[sizeof(err->subject)], inner[sizeof(err->subject)], lock[sizeof(err->subject)];

	if (!err || code >= 0 || err->code != code || code == -EINVAL || code == HF_E_NAME || !name)
		return code;
	(void)snprintf(context, sizeof(context), "%s '%s'", kind, name);
	if (strncmp(err->subject, context, strlen(context)) == 0)
		return code;
	memcpy(inner, err->subject, sizeof(inner));
	/* The lock of that name is the thing's own, and says no more than its name. */
	(void)snprintf(lock, sizeof(lock), "lock '%s'", name);
	hf_copy_text(err->subject, sizeof(err->subject), context);
	if (inner[0] && strcmp(inner, name) != 0 && strcmp(inner, lock) != 0) {
		size_t len = strlen(err->subject);

		(void)snprintf(err->subject + len, sizeof(err->subject) - len, ": %s", inner);
	}
	return code;
}

size_t hf_err_format(const struct hf_err *err, char *out, size_t cap)
{
	const struct hf_err_info *info = hf_err_info(err->code);
	const char *text = info ? info->text : strerrordesc_np(-err->code);
	int n;

	if (!text)
		text = "unknown error";
	if (info)
		n = snprintf(out, cap, "%s%s%s%s%s", err->subject, err->subject[0] ? ": " : "",
			     text, err->detail[0] ? ": " : "", err->detail);
	else
		n = snprintf(out, cap, "%s%s%s%s%s%s%s%s", err->subject,
			     err->subject[0] ? ": " : "", text, err->op[0] ? " (" : "",
			     err->op, err->op[0] ? ")" : "", err->detail[0] ? ": " : "", err->detail);
	for (unsigned char *c = (unsigned char *)out; cap > 0 && *c; c++) {
		/* U+0080 to U+009F are control characters too. */
		int c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;

		if (*c < 0x20 || *c == 0x7f || c1)
			*c = '?';
		if (c1)
			*++c = '?';
	}
	return n > 0 ? (size_t)n : 0;
}
