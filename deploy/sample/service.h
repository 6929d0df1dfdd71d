/*
 * The shop's gRPC side: its own API (toc.sample.v1.Shop), what it asks of TOC
 * (Submit, Cancel), and TOC's calls.
 *
 * Threads: start and stop from one. Both block.
 */
#ifndef TOC_SAMPLE_SERVICE_H
#define TOC_SAMPLE_SERVICE_H

#include "common/base/status.h"

struct service_options {
    const char *listen;
    const char *advertise;  /* where TOC calls; "": where it listens */
    const char *schedulers; /* host:port[,...], tried in turn */
};

struct service;
TOC_MUST_CHECK enum toc_status service_start(
    const struct service_options *options, struct service **ret_service,
    struct toc_error *reterr);
const char *service_address(const struct service *service);
void service_stop(struct service *service);

#endif
