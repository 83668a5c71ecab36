/* lock/etcd/http/http_certificate.c - the certificate that a server shows: until when, for which names, and whether a call accepts it. */
#include <stdio.h>
#include <string.h>

#include "hf/lock/etcd/http/http_curl.h"

/* "Expire date:Nov 18 12:00:00 2027 GMT": what is behind the label, or NULL. */
static const char *behind(const char *line, const char *label)
{
	size_t n = strlen(label);

	return strncmp(line, label, n) == 0 ? line + n : NULL;
}

static void read_line(const char *line, int is_servers, struct hf_http_certificate *ret)
{
	const char *begins = behind(line, "Start date:"), *ends = behind(line, "Expire date:");
	const char *names = behind(line, "X509v3 Subject Alternative Name:");
	time_t at = begins || ends ? curl_getdate(begins ? begins : ends, NULL) : -1;

	if (begins && at > 0 && (int64_t)at > ret->begins)
		ret->begins = (int64_t)at;
	if (ends && at > 0 && (ret->ends == 0 || (int64_t)at < ret->ends))
		ret->ends = (int64_t)at;
	if (names && is_servers)
		(void)snprintf(ret->names, sizeof(ret->names), "%s", names);
}

/* The chain that came, the server's own first. */
static void read_chain(CURL *easy, struct hf_http_certificate *ret)
{
	struct curl_certinfo *info = NULL;

	if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info)
		return;
	for (int i = 0; i < info->num_of_certs; i++)
		for (const struct curl_slist *line = info->certinfo[i]; line; line = line->next)
			read_line(line->data, i == 0, ret);
}

/* A handshake and nothing more. 0, or why there is no connection. */
static CURLcode shake_hands(CURL *easy, int is_strict, struct hf_http_certificate *ret)
{
	char why[CURL_ERROR_SIZE] = "";
	struct quiet quiet;
	CURLcode code;

	(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, is_strict ? 1L : 0L);
	(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, is_strict ? 2L : 0L);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
	hf_quiet_begin(&quiet);
	code = curl_easy_perform(easy);
	hf_quiet_end(&quiet);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	if (code == CURLE_OK)
		read_chain(easy, ret);
	else if (!ret->error[0])
		(void)snprintf(ret->error, sizeof(ret->error), "%.200s", why[0] ? why : curl_easy_strerror(code));
	return code;
}

int hf_curl_certificate(struct hf_http *http, const char *url, int64_t timeout_ns, struct hf_http_certificate *ret)
{
	CURL *easy = hf_curl_new(http);
	struct quiet quiet;
	CURLcode code;

	*ret = (struct hf_http_certificate){ 0 };
	if (!easy) {
		(void)snprintf(ret->error, sizeof(ret->error), "out of memory");
		return -1;
	}
	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / HF_MSEC) + 1);
	code = shake_hands(easy, 1, ret);
	ret->is_accepted = code == CURLE_OK;
	/* libcurl keeps nothing of one that it refuses: once more, only to read it. Nothing is sent to that server. */
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		code = shake_hands(easy, 0, ret);
	hf_quiet_begin(&quiet);
	curl_easy_cleanup(easy);
	hf_quiet_end(&quiet);
	return code == CURLE_OK ? 0 : -1;
}
