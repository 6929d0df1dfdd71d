#include "executor/fitness.h"

#include "common/clock/clock.h"

#define UNFIT_MS 2500
#define AWAY_MS_MIN 1000
#define AWAY_MS_MAX 30000
#define CALM_MS 60000 /* here for so long: what was before is forgotten */

static void
leave(struct exec_fitness *fitness, int64_t now_ns)
{
    int64_t here_ns = now_ns - fitness->since_ns;

    fitness->away_ms *= 2;
    if (here_ns > CALM_MS * TOC_NS_PER_MS || fitness->away_ms == 0)
        fitness->away_ms = AWAY_MS_MIN;
    if (fitness->away_ms > AWAY_MS_MAX)
        fitness->away_ms = AWAY_MS_MAX;
    fitness->away = true;
    fitness->since_ns = now_ns;
}

static void
come_back(struct exec_fitness *fitness, int64_t now_ns)
{
    fitness->away = false;
    fitness->since_ns = fitness->well_ns = now_ns;
}

bool
exec_fitness_look(struct exec_fitness *fitness, bool well, int64_t now_ns)
{
    if (!fitness->looked) {
        fitness->looked = true;
        come_back(fitness, now_ns);
    }
    if (fitness->away) {
        if (well &&
            now_ns - fitness->since_ns >= fitness->away_ms * TOC_NS_PER_MS)
            come_back(fitness, now_ns);
    } else if (well) {
        fitness->well_ns = now_ns;
    } else if (now_ns - fitness->well_ns >= UNFIT_MS * TOC_NS_PER_MS) {
        leave(fitness, now_ns);
    }
    return !fitness->away;
}
