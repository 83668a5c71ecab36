/*
 * view/doctor/doctor.h - is the state directory sound, and what does this machine offer? For what is
 * missing it says what is used instead.
 */
#ifndef VIEW_DOCTOR_DOCTOR_H
#define VIEW_DOCTOR_DOCTOR_H

enum hf_finding {
	HF_FOUND_OK,     /* there */
	HF_FOUND_ABSENT, /* not there: something weaker is used instead */
	HF_FOUND_WARN,   /* there, but the administrator should look */
	HF_FOUND_FAIL,   /* Holdfast cannot work like this */
};

#define HF_DOCTOR_TEXT_MAX 512

struct hf_checkup {
	const char *name;
	enum hf_finding found;
	const char *text;    /* what was seen */
	const char *gives;   /* what it is good for; NULL: not told */
	const char *instead; /* what is used where it is missing; NULL: not told */
};

typedef void hf_checkup_fn(void *arg, const struct hf_checkup *checkup);

/*
 * Checks the state directory `dir` (NULL: the usual one) and tries what the kernel offers; `fn` gets each result.
 * Forks for what would change the process. Returns the exit status of a directory that is refused, else 0.
 */
int hf_doctor_examine(const char *dir, hf_checkup_fn *fn, void *arg);

#endif
