#include "admin/ctl/command.h"

#include "admin/ctl/text.h"

#include <string.h>

struct parser {
    struct ctl *ctl;
    char **argv; /* after the program's name */
    size_t n, at;
    const char **words; /* what is no flag, in order */
    size_t n_words;
    bool only_words; /* after "--" */
};

/* Flags that are not known yet stand beside the words until the command is. */
static const struct ctl_flag *
flag_in(const struct ctl_flag_group *group, struct toc_str name, char letter)
{
    for (size_t i = 0; i < group->n; i++) {
        const struct ctl_flag *flag = &group->flags[i];
        if (letter != '\0' ? flag->letter == letter
                           : toc_str_eq(toc_str_of(flag->name), name))
            return flag;
    }
    return NULL;
}

static const struct ctl_flag *
flag_find(const struct ctl_command *command, struct toc_str name, char letter)
{
    const struct ctl_flag *flag = flag_in(&ctl_global_flags, name, letter);

    for (size_t i = 0; flag == NULL && command != NULL && i < CTL_GROUPS_MAX &&
                       command->groups[i] != NULL;
         i++)
        flag = flag_in(command->groups[i], name, letter);
    return flag;
}

static bool
is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* A flag of any command: where a word is only a flag's value must be known
 * before the command is. */
static const struct ctl_flag *
flag_anywhere(struct toc_str name, char letter)
{
    const struct ctl_flag *flag = flag_find(NULL, name, letter);

    for (size_t i = 0; flag == NULL && i < ctl_n_commands; i++)
        flag = flag_find(&ctl_commands[i], name, letter);
    return flag;
}

/* "--name", "--name=value", "-x", "-xvalue". */
struct word_flag {
    struct toc_str name;
    char letter;
    const char *value; /* NULL: none attached */
};

static struct word_flag
split_flag(const char *word)
{
    struct word_flag parts = {{NULL, 0}, '\0', NULL};
    const char *equals;

    if (word[1] != '-') {
        parts.letter = word[1];
        if (word[2] != '\0')
            parts.value = word + (word[2] == '=' ? 3 : 2);
        return parts;
    }
    equals = strchr(word, '=');
    parts.name = toc_str_of(word + 2);
    if (equals != NULL) {
        parts.name.len = (size_t)(equals - word) - 2;
        parts.value = equals + 1;
    }
    return parts;
}

/* Collects the words, skipping flags and their values. */
static void
collect_words(struct parser *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const char *word = p->argv[i];
        if (strcmp(word, "--") == 0) {
            while (++i < p->n)
                p->words[p->n_words++] = p->argv[i];
            return;
        }
        if (!is_flag(word)) {
            p->words[p->n_words++] = word;
            continue;
        }
        struct word_flag parts = split_flag(word);
        const struct ctl_flag *flag = flag_anywhere(parts.name, parts.letter);
        if (flag != NULL && flag->value != NULL && parts.value == NULL)
            i++;
    }
}

static enum ctl_exit
take_flag(struct parser *p, const char *word)
{
    struct ctl *ctl = p->ctl;
    struct word_flag parts = split_flag(word);
    const struct ctl_flag *flag =
        flag_find(ctl->command, parts.name, parts.letter);
    const char *of = ctl->command != NULL ? ctl->command->name : "";

    if (flag == NULL)
        return ctl_fail(
            ctl, CTL_USAGE, toc_arena_printf(&ctl->arena, "tocctl help %s", of),
            "unknown flag %s", ctl_safe(&ctl->arena, toc_str_of(word)));
    if (flag->value == NULL && parts.value != NULL)
        return ctl_fail(ctl, CTL_USAGE, NULL, "--%s takes no value",
                        flag->name);
    if (flag->value != NULL && parts.value == NULL) {
        if (p->at >= p->n)
            return ctl_fail(ctl, CTL_USAGE, NULL, "--%s needs a value: %s",
                            flag->name, flag->value);
        parts.value = p->argv[p->at++];
    }
    ctl->values[ctl->n_values++] =
        (struct ctl_value){flag, parts.value != NULL ? parts.value : ""};
    return CTL_OK;
}

static enum ctl_exit
take_flags(struct parser *p)
{
    while (p->at < p->n) {
        const char *word = p->argv[p->at++];
        if (strcmp(word, "--") == 0)
            break;
        if (is_flag(word)) {
            enum ctl_exit end = take_flag(p, word);
            if (end != CTL_OK)
                return end;
        }
    }
    return CTL_OK;
}

static enum ctl_exit
read_output(struct ctl *ctl)
{
    static const struct {
        const char *name;
        enum ctl_output output;
    } names[] = {{"table", CTL_OUTPUT_TABLE},
                 {"wide", CTL_OUTPUT_WIDE},
                 {"json", CTL_OUTPUT_JSON},
                 {"yaml", CTL_OUTPUT_YAML},
                 {"id", CTL_OUTPUT_ID}};
    const char *text = ctl_flag(ctl, "output");

    if (text == NULL)
        return CTL_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i].name) == 0) {
            ctl->output = names[i].output;
            return CTL_OK;
        }
    }
    return ctl_fail(ctl, CTL_USAGE, NULL,
                    "--output %s: must be table, wide, json, yaml or id",
                    ctl_safe(&ctl->arena, toc_str_of(text)));
}

static enum ctl_exit
read_timeout(struct ctl *ctl)
{
    const char *text = ctl_flag(ctl, "timeout");

    if (text == NULL)
        return CTL_OK;
    if (!ctl_duration_parse(toc_str_of(text), &ctl->timeout_ms) ||
        ctl->timeout_ms < 1 || ctl->timeout_ms > TOC_MS_PER_DAY)
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--timeout %s: must be a duration from 1ms to 1d, "
                        "such as 5s",
                        ctl_safe(&ctl->arena, toc_str_of(text)));
    return CTL_OK;
}

static enum ctl_exit
check_args(struct ctl *ctl)
{
    const struct ctl_command *command = ctl->command;
    const char *hint = toc_arena_printf(&ctl->arena, "usage: tocctl %s %s",
                                        command->name, command->args);

    if (ctl->n_args < command->args_min)
        return ctl_fail(ctl, CTL_USAGE, hint, "%s: an argument is missing",
                        command->name);
    if (ctl->n_args > command->args_max)
        return ctl_fail(
            ctl, CTL_USAGE, hint, "%s: too many arguments: %s", command->name,
            ctl_safe(&ctl->arena, toc_str_of(ctl->args[command->args_max])));
    return CTL_OK;
}

enum ctl_exit
ctl_parse(struct ctl *ctl, int argc, char **argv)
{
    struct parser p = {.ctl = ctl};
    size_t taken = 0;
    enum ctl_exit end;

    p.argv = argc > 0 ? argv + 1 : argv;
    p.n = argc > 0 ? (size_t)argc - 1 : 0;
    p.words = toc_arena_calloc(&ctl->keep, p.n + 1, sizeof *p.words);
    ctl->values = toc_arena_calloc(&ctl->keep, p.n + 1, sizeof *ctl->values);
    collect_words(&p);
    ctl->command = ctl_command_find(p.words, p.n_words, &taken);
    if (ctl->command == NULL && p.n_words > 0)
        return ctl_fail(ctl, CTL_USAGE, "tocctl help", "unknown command: %s",
                        ctl_safe(&ctl->arena, toc_str_of(p.words[0])));
    ctl->args = p.words + taken;
    ctl->n_args = p.n_words - taken;
    end = take_flags(&p);
    if (end != CTL_OK)
        return end;
    if (ctl->command == NULL || ctl_has(ctl, "help"))
        return CTL_OK;
    end = ctl_worse(read_output(ctl), read_timeout(ctl));
    return end != CTL_OK ? end : check_args(ctl);
}
