#include "scheduler/keeper.h"

#include "common/base/log.h"
#include "common/base/thread.h"

#include <string.h>

#define AHEAD_MS 2000 /* due within this: sent before the shard is given up */
#define HAND_POLL_MS 20
#define OFF_MS 2000   /* the clock may be off for this */
#define LEAVE_MS 1500 /* for sending ahead at the end, at most */

void
sched_keeper_init(struct sched_keeper *keeper, struct toc_str node)
{
    sched_owner_init(&keeper->owner, node);
}

static int64_t
mono_ns(const struct sched_keeper *keeper)
{
    return toc_clock_mono(keeper->clk).ns;
}

static void
note_owner(struct sched_keeper *keeper, const struct toc_coord_event *event)
{
    uint16_t shard = event->owner.shard;
    bool self = toc_str_eq(event->owner.node, toc_str_of(keeper->owner.self));

    if (shard >= TOC_SHARDS)
        return;
    if (event->kind == TOC_COORD_OWNED && !self)
        sched_shards_set_owner(keeper->shards, shard, event->owner.address);
    else
        sched_shards_set_owner(keeper->shards, shard,
                               (struct toc_str){NULL, 0});
}

static void
on_event(void *arg, const struct toc_coord_event *event)
{
    struct sched_keeper *keeper = arg;

    switch (event->kind) {
    case TOC_COORD_OWNED:
    case TOC_COORD_FREED:
        note_owner(keeper, event);
        break;
    case TOC_COORD_MEMBER_UP:
        TOC_LOG(INFO, "member.up", F_MSG("a process is there"),
                F_SPAN("of_role", event->member.role),
                F_SPAN("of_node", event->member.node),
                F_SPAN("address", event->member.address));
        break;
    case TOC_COORD_MEMBER_DOWN:
        TOC_LOG(INFO, "member.down", F_MSG("a process is gone"),
                F_SPAN("of_role", event->member.role),
                F_SPAN("of_node", event->member.node));
        break;
    case TOC_COORD_SESSION_LOST:
        TOC_LOG(WARN, "session.lost",
                F_MSG("lost the session; giving up all shards"));
        break;
    case TOC_COORD_SESSION_NEW:
        atomic_store(&keeper->session, true);
        TOC_LOG(INFO, "session.new", F_MSG("has a session"));
        break;
    case TOC_COORD_RESET:
    case TOC_COORD_SYNCED:
    case TOC_COORD_WANTED:
    case TOC_COORD_UNWANTED:
        break;
    }
    sched_roster_event(keeper->roster, event);
    sched_owner_event(&keeper->owner, event, mono_ns(keeper));
}

/* ---- actions
 * -------------------------------------------------------------------- */

/* How many it is about, and how many are ours now. */
#define F_SHARDS(keeper, n) \
    F_UINT("shards", n), F_UINT("owned", sched_shards_owned((keeper)->shards))

static void
drop(struct sched_keeper *keeper, const struct sched_owner_action *action)
{
    for (size_t i = 0; i < action->n; i++)
        sched_shards_drop(keeper->shards, action->shards[i]);
    keeper->changed(keeper->arg);
}

static void
acquire(struct sched_keeper *keeper, const struct sched_owner_action *action)
{
    bool won[TOC_SHARDS] = {false};
    struct toc_error err = {0};
    size_t n = 0;

    if (toc_coord_acquire(keeper->coord, action->shards, action->n, won,
                          &err) != TOC_OK) {
        TOC_LOG(WARN, "shards.acquire_failed",
                F_MSG("cannot claim shards, trying again in 1 s"), F_ERR(&err));
        memset(won, 0, sizeof won);
    }
    sched_owner_acquired(&keeper->owner, action->shards, won, action->n,
                         mono_ns(keeper));
    for (size_t i = 0; i < action->n; i++)
        if (won[i]) {
            sched_shards_take(keeper->shards, action->shards[i]);
            n++;
        }
    if (n == 0)
        return;
    keeper->changed(keeper->arg);
    TOC_LOG(INFO, "shards.acquired", F_MSG("owns more shards"),
            F_SHARDS(keeper, n));
}

static void
begin_hand_over(struct sched_keeper *keeper,
                const struct sched_owner_action *action)
{
    keeper->hand_until_ms = toc_clock_wall(keeper->clk).ms + AHEAD_MS;
    for (size_t i = 0; i < action->n; i++)
        atomic_store(&keeper->shards->handing[action->shards[i]], true);
    sched_memory_hasten(keeper->memory, keeper->hand_until_ms);
}

static void
release(struct sched_keeper *keeper, const struct sched_owner_action *action)
{
    struct toc_error err = {0};
    enum toc_status st;

    drop(keeper, action);
    st = toc_coord_release(keeper->coord, action->shards, action->n, &err);
    sched_owner_released(&keeper->owner, action->shards, action->n,
                         mono_ns(keeper));
    if (st == TOC_OK) {
        TOC_LOG(INFO, "shards.released", F_MSG("gave shards up to others"),
                F_SHARDS(keeper, action->n));
        return;
    }
    TOC_LOG(WARN, "shards.release_failed",
            F_MSG("cannot give shards up; they are taken back later"),
            F_ERR(&err));
    sched_owner_not_released(&keeper->owner, action->shards, action->n,
                             mono_ns(keeper));
}

static void
want(struct sched_keeper *keeper, const struct sched_owner_action *action,
     bool wanted)
{
    struct toc_error err = {0};

    if (toc_coord_want(keeper->coord, action->shards, action->n, wanted,
                       &err) != TOC_OK)
        TOC_LOG(WARN, "shards.want_failed",
                F_MSG("cannot say which shards are to be ours; they stay where "
                      "they are"),
                F_ERR(&err));
    else if (wanted)
        TOC_LOG(INFO, "shards.wanted", F_MSG("asked for shards of others"),
                F_SHARDS(keeper, action->n));
}

static void
carry_out(struct sched_keeper *keeper, const struct sched_owner_action *action)
{
    switch (action->kind) {
    case SCHED_OWNER_NOTHING:
        break;
    case SCHED_OWNER_ACQUIRE:
        acquire(keeper, action);
        break;
    case SCHED_OWNER_HAND_OVER:
        begin_hand_over(keeper, action);
        break;
    case SCHED_OWNER_RELEASE:
        release(keeper, action);
        break;
    case SCHED_OWNER_DROP:
        drop(keeper, action);
        TOC_LOG(INFO, "shards.dropped", F_MSG("shards are not ours any more"),
                F_SHARDS(keeper, action->n));
        break;
    case SCHED_OWNER_WANT:
        want(keeper, action, true);
        break;
    case SCHED_OWNER_UNWANT:
        want(keeper, action, false);
        break;
    }
}

static void
take_asked(struct sched_keeper *keeper)
{
    uint16_t shards[TOC_SHARDS];
    size_t n = sched_roster_take_asked(keeper->roster, shards);

    for (size_t i = 0; i < n; i++)
        sched_owner_ask(&keeper->owner, shards[i]);
}

static void
look_at_clock(struct sched_keeper *keeper)
{
    int64_t now_ns = mono_ns(keeper);
    int64_t off_ms = keeper->skew == NULL ? 0 : sched_skew_off_ms(keeper->skew);
    bool unfit;

    if (off_ms != 0 && !keeper->off)
        keeper->off_since_ns = now_ns;
    keeper->off = off_ms != 0;
    unfit =
        keeper->off && now_ns - keeper->off_since_ns >= OFF_MS * TOC_NS_PER_MS;
    if (unfit && !keeper->owner.unfit)
        TOC_LOG(WARN, "shards.refused",
                F_MSG("the clock is off; gives up all shards until it is right "
                      "again"),
                F_INT("ahead_ms", off_ms));
    if (!unfit && keeper->owner.unfit)
        TOC_LOG(INFO, "shards.welcome",
                F_MSG("the clock is right again; claims shards as before"));
    sched_owner_set_fit(&keeper->owner, !unfit);
}

/* Returns when to look again. */
static int64_t
act(struct sched_keeper *keeper)
{
    struct sched_owner_action action;
    int64_t wake_ns;

    if (sched_owner_handing(&keeper->owner) &&
        !sched_memory_unsent(keeper->memory, keeper->hand_until_ms))
        sched_owner_flushed(&keeper->owner);
    look_at_clock(keeper);
    take_asked(keeper);
    do {
        wake_ns = sched_owner_step(&keeper->owner, mono_ns(keeper), &action);
        carry_out(keeper, &action);
    } while (action.kind != SCHED_OWNER_NOTHING &&
             action.kind != SCHED_OWNER_HAND_OVER);
    return wake_ns;
}

void
sched_keeper_turn(struct sched_keeper *keeper, int64_t max_ms)
{
    struct toc_error err = {0};
    int64_t wake_ns = act(keeper);
    int64_t wait_ms = (wake_ns - mono_ns(keeper)) / TOC_NS_PER_MS + 1;

    if (wait_ms > max_ms)
        wait_ms = max_ms;
    if (sched_owner_handing(&keeper->owner) && wait_ms > HAND_POLL_MS)
        wait_ms = HAND_POLL_MS;
    if (wait_ms < 0)
        wait_ms = 0;
    if (toc_coord_poll(keeper->coord, wait_ms, on_event, keeper, &err) ==
        TOC_OK) {
        if (keeper->failing)
            TOC_LOG(INFO, "coord.recovered", F_MSG("etcd answers again"));
        keeper->failing = false;
    } else {
        if (!keeper->failing)
            TOC_LOG(WARN, "coord.failed",
                    F_MSG("no word from etcd, trying again"), F_ERR(&err));
        keeper->failing = true;
    }
    (void)act(keeper);
}

/* ---- the end
 * ---------------------------------------------------------------------- */

static void
send_ahead(struct sched_keeper *keeper)
{
    int64_t until_ms = toc_clock_wall(keeper->clk).ms + AHEAD_MS;
    int64_t end_ns = toc_mono_add_ms(toc_clock_mono(keeper->clk), LEAVE_MS).ns;
    struct toc_bell never;

    toc_bell_init(&never);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (sched_shards_gen(keeper->shards, i) != 0)
            atomic_store(&keeper->shards->handing[i], true);
    sched_memory_hasten(keeper->memory, until_ms);
    while (sched_memory_unsent(keeper->memory, until_ms) &&
           mono_ns(keeper) < end_ns)
        (void)toc_bell_wait(
            &never,
            toc_mono_add_ms(toc_clock_mono(keeper->clk), HAND_POLL_MS).ns);
    toc_bell_done(&never);
}

void
sched_keeper_leave(struct sched_keeper *keeper)
{
    struct toc_error err = {0};
    size_t owned = sched_shards_owned(keeper->shards);

    if (owned > 0 && sched_shards_live(keeper->shards))
        send_ahead(keeper);
    sched_shards_drop_all(keeper->shards);
    if (toc_coord_leave(keeper->coord, &err) != TOC_OK)
        TOC_LOG(WARN, "coord.leave_failed",
                F_MSG("could not end the session; it ends by itself"),
                F_ERR(&err));
    keeper->changed(keeper->arg);
    TOC_LOG(INFO, "shards.left", F_MSG("gave up all shards"),
            F_SHARDS(keeper, owned));
}
