/*
 * What several commands ask of their command line: tasks, times, numbers,
 * filters. Errors are reported; the return says how the process ends.
 *
 * Threads: one.
 */
#ifndef TOC_ADMIN_CTL_ASK_H
#define TOC_ADMIN_CTL_ASK_H

#include "admin/ctl/ctl.h"
#include "admin/ctl/text.h"

#include "toc/v1/types.pb-c.h"

TOC_MUST_CHECK enum ctl_exit ctl_ask_ref(struct ctl *ctl, const char *text,
                                         struct ctl_ref *ret_ref);
Toc__V1__TaskKey *ctl_ref_key(struct ctl *ctl, const struct ctl_ref *ref);

/* --at or --in: exactly one, or none when it is not needed (both stay NULL). */
struct ctl_when {
    Google__Protobuf__Timestamp *at;
    Google__Protobuf__Duration *in;
};
TOC_MUST_CHECK enum ctl_exit ctl_ask_when(struct ctl *ctl, bool needed,
                                          struct ctl_when *ret_when);
/* NULL when the flag was not given. They live as long as the process. */
TOC_MUST_CHECK enum ctl_exit ctl_ask_time(struct ctl *ctl, const char *flag,
                                          Google__Protobuf__Timestamp **ret);
TOC_MUST_CHECK enum ctl_exit ctl_ask_duration(struct ctl *ctl, const char *flag,
                                              Google__Protobuf__Duration **ret);
/* Untouched when the flag was not given. */
TOC_MUST_CHECK enum ctl_exit ctl_ask_number(struct ctl *ctl, const char *flag,
                                            int64_t min, int64_t max,
                                            int64_t *ret_number);

/* A word of an enum without its prefix: "at-least-once" is
 * DELIVERY_GUARANTEE_AT_LEAST_ONCE. */
TOC_MUST_CHECK enum ctl_exit ctl_ask_word(struct ctl *ctl, const char *flag,
                                          struct toc_str word,
                                          const ProtobufCEnumDescriptor *type,
                                          const char *prefix, int *ret_number);

/* The bytes of a file, "-" for standard input, up to max. */
TOC_MUST_CHECK enum ctl_exit ctl_ask_file(struct ctl *ctl, const char *path,
                                          size_t max,
                                          struct toc_str *ret_bytes);
/* Asks a yes or no question on standard error; --yes answers it. */
bool ctl_ask_yes(struct ctl *ctl, const char *question);

#endif
