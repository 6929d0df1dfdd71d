/*
 * Page tokens: where the next page begins, and for which list and filter. They
 * say nothing to a client, and one that was changed, or is used with another
 * filter or list, is refused.
 *
 * A token is not a secret: the check is a hash without a key, against mistakes.
 * What a forged one could name is only a place to start reading from.
 *
 * Threads: any. Pure.
 */
#ifndef TOC_ADMIN_PAGE_TOKEN_H
#define TOC_ADMIN_PAGE_TOKEN_H

#include "common/base/arena.h"
#include "common/store/store.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* list: "tasks", "dead", "buckets". filter may be NULL. Empty text for a cursor
 * that is not set: there is no next page. */
char *admin_page_token(struct toc_arena *arena, const char *list,
                       const ProtobufCMessage *filter,
                       const struct toc_cursor *cursor);
/* An empty token is the beginning. */
bool admin_page_token_parse(const char *token, const char *list,
                            const ProtobufCMessage *filter,
                            struct toc_cursor *ret_cursor);

#endif
