# shellcheck shell=bash
# Loopback ports: chosen free at first use, kept in $TOC_HOME/ports.env, chosen
# anew only when somebody else has taken one meanwhile.
#
# Chosen below the range from which the kernel gives ports to outgoing
# connections. A reservation per port, in the user's cache, keeps two homes
# that start at the same moment, or of which one is down, apart.

PORT_FIRST=20000
PORT_LAST=31999

declare -A PORTS=()

ports_load()
{
    local key value
    PORTS=()
    [[ -f $TOC_HOME/ports.env ]] || return 0
    while IFS='=' read -r key value; do
        if [[ $key == PORT_* && $value =~ ^[0-9]+$ ]]; then
            PORTS[${key#PORT_}]=$value
        fi
    done <"$TOC_HOME/ports.env"
}

ports_save()
{
    local key
    {
        say "# Ports of this cluster, kept between starts."
        for key in "${!PORTS[@]}"; do
            say "PORT_$key=${PORTS[$key]}"
        done | LC_ALL=C sort
    } >"$TOC_HOME/ports.env.new"
    mv -- "$TOC_HOME/ports.env.new" "$TOC_HOME/ports.env"
}

# port_listening PORT: does anybody listen there?
port_listening()
{
    local hex
    printf -v hex '%04X' "$1"
    # local address, remote address, state 0A = LISTEN
    grep -qsE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:[0-9A-F]+ 0A " \
        /proc/net/tcp /proc/net/tcp6
}

# port_reserved PORT: by another home that still exists?
port_reserved()
{
    local file="$TOC_CACHE/ports/$1" other
    [[ -f $file ]] || return 1
    other=$(cat -- "$file")
    [[ $other != "$TOC_HOME" && -e $other/ports.env ]]
}

# port_ensure KEY PROCESS: give KEY a port. A port that is ours and listens is
# fine while PROCESS runs, else somebody took it.
port_ensure()
{
    local key=$1 process=$2 port=${PORTS[$1]:-} tries
    if [[ -n $port ]]; then
        if proc_alive "$process" || ! port_listening "$port"; then
            return 0
        fi
        say "port $port of $process is taken by another program: choosing anew"
    fi
    mkdir -p -- "$TOC_CACHE/ports"
    exec 8>>"$TOC_CACHE/ports/.lock"
    flock -w 30 8 || die "cannot lock $TOC_CACHE/ports"
    for ((tries = 0; tries < 500; tries++)); do
        port=$((PORT_FIRST + (RANDOM * 32768 + RANDOM) %
            (PORT_LAST - PORT_FIRST + 1)))
        if ! port_listening "$port" && ! port_reserved "$port"; then
            printf '%s' "$TOC_HOME" >"$TOC_CACHE/ports/$port"
            PORTS[$key]=$port
            ports_save
            exec 8>&-
            return 0
        fi
    done
    die "no free port between $PORT_FIRST and $PORT_LAST"
}

ports_release()
{
    local port file
    for port in "${PORTS[@]}"; do
        file="$TOC_CACHE/ports/$port"
        if [[ -f $file && $(cat -- "$file") == "$TOC_HOME" ]]; then
            rm -f -- "$file"
        fi
    done
}
