# shellcheck shell=bash
# TOC's own processes.

role_names()
{
    :
}

roles_env()
{
    :
}

roles_up()
{
    die "the roles cannot be started yet: use --servers-only"
}
