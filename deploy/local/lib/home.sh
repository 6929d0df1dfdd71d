# shellcheck shell=bash
# The folder of a cluster, and the settings it was started with.
#
#   .toc-local     marks the folder as ours: only such a one is ever removed
#   settings.env   options of the last up, so that later commands need none
#   ports.env      the ports
#   log/ run/      a log and a pid file for each process
#   mariadb/ etcd/ kafka/   their data

HOME_MARKER=.toc-local

# shellcheck disable=SC2034 # read by the other files
declare -A SETTINGS=()

# Finds the home and the cache, and hides the caller's TOC_ variables: what is
# started must see only those of its own cluster.
home_find()
{
    local name home=${HOME:-}
    if [[ -z $home ]]; then
        home=$(getent passwd "$EUID" | cut -d: -f6) || true
        if [[ -n $home ]]; then
            export HOME=$home
        fi
    fi
    if [[ -z $home && (-z ${OPT_HOME:-${TOC_HOME:-}} || -z ${XDG_CACHE_HOME:-}) ]]; then
        die "no home folder is known: set HOME, or --home and XDG_CACHE_HOME"
    fi
    TOC_HOME=$(realpath -m -- "${OPT_HOME:-${TOC_HOME:-$home/.local/share/toc}}")
    TOC_CACHE=$(realpath -m -- "${XDG_CACHE_HOME:-$home/.cache}")/toc
    [[ $TOC_HOME != *[[:cntrl:]]* ]] || usage_error "a strange name for a home"
    for name in "${!TOC_@}"; do
        export -n "${name?}"
    done
}

home_exists()
{
    [[ -f $TOC_HOME/$HOME_MARKER ]]
}

home_need()
{
    home_exists || die "no cluster in $TOC_HOME (toc up makes one)"
    settings_load
    ports_load
}

home_create()
{
    if ! home_exists; then
        if [[ -e $TOC_HOME && -n $(ls -A -- "$TOC_HOME") ]]; then
            die "$TOC_HOME is not empty and not ours: choose another --home"
        fi
        mkdir -p -- "$TOC_HOME" || die "cannot make $TOC_HOME"
        chmod 700 "$TOC_HOME"
        say "A local TOC cluster; toc destroy removes this folder." \
            >"$TOC_HOME/$HOME_MARKER"
    fi
    mkdir -p -- "$TOC_HOME/log" "$TOC_HOME/run"
}

settings_load()
{
    local key value
    SETTINGS=([roles]=no [schedulers]=2 [executors]=2 [partitions]=8
        [build_dir]=$REPO_DIR/build/release)
    if [[ -f $TOC_HOME/settings.env ]]; then
        while IFS='=' read -r key value; do
            if [[ -v SETTINGS[$key] ]]; then
                SETTINGS[$key]=$value
            fi
        done <"$TOC_HOME/settings.env"
    fi
    SETTINGS[schedulers]=${OPT_SCHEDULERS:-${SETTINGS[schedulers]}}
    SETTINGS[executors]=${OPT_EXECUTORS:-${SETTINGS[executors]}}
    SETTINGS[partitions]=${OPT_PARTITIONS:-${SETTINGS[partitions]}}
    if [[ -n $OPT_BUILD_DIR ]]; then
        SETTINGS[build_dir]=$(realpath -m -- "$OPT_BUILD_DIR")
    fi
}

settings_save()
{
    local key
    for key in "${!SETTINGS[@]}"; do
        say "$key=${SETTINGS[$key]}"
    done | LC_ALL=C sort >"$TOC_HOME/settings.env.new"
    mv -- "$TOC_HOME/settings.env.new" "$TOC_HOME/settings.env"
}
