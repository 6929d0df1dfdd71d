/*
 * Calls to the services: where they are, several addresses in turn, errors
 * told to the user.
 *
 * Blocking: a call, for --timeout at most (default 10 s). Threads: one.
 */
#ifndef TOC_ADMIN_CTL_CONN_H
#define TOC_ADMIN_CTL_CONN_H

#include "admin/ctl/ctl.h"

#include "google/rpc/status.pb-c.h"

#define CTL_TIMEOUT_MS_DEFAULT 10000

/* Calls a method of TimeoutService on a scheduler. `what` (may be NULL) stands
 * before an error: the task it is about. Failures are reported here. */
TOC_MUST_CHECK enum ctl_exit ctl_call_scheduler(struct ctl *ctl,
                                                const char *method,
                                                const char *what,
                                                const ProtobufCMessage *request,
                                                ProtobufCMessage **ret_reply);
/* The same of AdminService on an admin. */
TOC_MUST_CHECK enum ctl_exit ctl_call_admin(struct ctl *ctl, const char *method,
                                            const char *what,
                                            const ProtobufCMessage *request,
                                            ProtobufCMessage **ret_reply);
/* One address, errors not reported; for health. */
TOC_MUST_CHECK enum toc_status ctl_call_address(
    struct ctl *ctl, const char *address,
    const ProtobufCServiceDescriptor *service, const char *method,
    const ProtobufCMessage *request, int64_t timeout_ms,
    ProtobufCMessage **ret_reply, struct toc_error *reterr);

/* Reports the failure of an item of a batch. */
enum ctl_exit ctl_item_error(struct ctl *ctl, const char *what,
                             const Google__Rpc__Status *error);
enum ctl_exit ctl_exit_of(enum toc_status st);

/* "host:port": a port from 1 to 65535 behind the last colon. */
bool ctl_address_valid(struct toc_str address);

#endif
