/* view/doctor/certificate.c - asks openssl x509; libholdfast itself links nothing that could read a certificate. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "hf/view/doctor/certificate.h"
#include "holdfast/clock.h"

#define LIMIT_NS (10 * HF_SEC)
#define DAY_S    86400

/* What openssl says of a file that is no certificate is said by us. */
static int be_silent(void *arg)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)arg;
	return null < 0 || dup2(null, STDERR_FILENO) < 0 ? -errno : 0;
}

/* "notAfter=2027-11-18 12:00:00Z" and "subject=CN=host,O=us" */
static int read_lines(const char *text, struct hf_certificate *ret)
{
	const char *subject = strstr(text, "\nsubject=");
	struct tm end = { 0 };
	int64_t left;

	if (!subject || !strptime(text, "notAfter=%Y-%m-%d %H:%M:%SZ", &end))
		return -EINVAL;
	subject += strlen("\nsubject=");
	left = (int64_t)timegm(&end) - hf_wall_now().ns / HF_SEC;
	ret->days_left = left < 0 ? -1 - -left / DAY_S : left / DAY_S;
	ret->named = strncmp(subject, "CN=", 3) == 0 || strstr(subject, ",CN=") || strstr(subject, "+CN=");
	return 0;
}

int hf_certificate_read(const char *file, struct hf_certificate *ret)
{
	const char *const argv[] = { "openssl", "x509", "-in", file, "-noout", "-enddate", "-dateopt", "iso_8601",
				     "-subject", "-nameopt", "RFC2253", NULL };
	AUTO_FD out = memfd_create("holdfast-certificate", MFD_CLOEXEC);
	struct hf_command command = { .argv = (char *const *)(uintptr_t)argv, .envp = environ, .in = -1, .out = out,
				      .limit_ns = LIMIT_NS, .enter = be_silent };
	struct hf_command_result result;
	char text[4096];
	ssize_t n;

	if (out < 0)
		return -errno;
	hf_command_run(&command, &result);
	if (result.error < 0 || result.exec_error < 0)
		return result.error < 0 ? result.error : result.exec_error;
	if (result.timed_out || result.status != 0)
		return -EINVAL;
	n = pread(out, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return read_lines(text, ret);
}
