/* view/doctor/certificate.h - until when a certificate is valid, as the openssl command reads it. */
#ifndef VIEW_DOCTOR_CERTIFICATE_H
#define VIEW_DOCTOR_CERTIFICATE_H

#include <stdint.h>

struct hf_certificate {
	int64_t days_left; /* whole days; negative: it has ended */
	int named;         /* its subject has a CommonName */
};

/* 0; -ENOENT: there is no openssl command; -EINVAL: the file is no certificate. */
int hf_certificate_read(const char *file, struct hf_certificate *ret);

#endif
