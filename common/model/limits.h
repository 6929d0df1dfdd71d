/*
 * Stated maxima of everything a caller can send. The .proto comments and
 * docs/LIMITS.md repeat them.
 */
#ifndef TOC_MODEL_LIMITS_H
#define TOC_MODEL_LIMITS_H

#define TOC_BIZ_TYPE_MAX 64 /* bytes of UTF-8 */
#define TOC_BIZ_ID_MAX 128  /* bytes of UTF-8 */
#define TOC_NAME_MAX 64     /* bytes of UTF-8; may be empty */
#define TOC_TARGET_MAX 512  /* bytes */
#define TOC_SPEC_MAX 2048   /* bytes, serialized */
#define TOC_ERROR_MAX 512   /* bytes kept of an error text */
#define TOC_REASON_MAX 256  /* bytes of a command's reason */
#define TOC_PAYLOAD_DEFAULT_MAX (64 * 1024)
#define TOC_PAYLOAD_MAX (1024 * 1024)
#define TOC_BATCH_MAX 1000 /* items of a batch call */
#define TOC_LADDER_MAX 32  /* steps of a retry ladder */
#define TOC_RETRIES_MAX 1000
#define TOC_RETRY_DELAY_MS_MAX (INT64_C(30) * 86400000)
#define TOC_CALL_TIMEOUT_MS_MIN 1
#define TOC_CALL_TIMEOUT_MS_DEFAULT 10000
#define TOC_CALL_TIMEOUT_MS_MAX 600000
#define TOC_HEADERS_MAX 16
#define TOC_HEADER_BYTES_MAX 256
#define TOC_HINT_PAYLOAD_MAX 1024 /* larger ones are read at the claim */
#define TOC_CLAIMS_MAX 20         /* lost more often: dead */
#define TOC_KEY_WINDOW_MS_DEFAULT (INT64_C(24) * 3600000)

#endif
