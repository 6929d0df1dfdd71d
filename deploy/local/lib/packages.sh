# shellcheck shell=bash
# Installs the Debian packages of packages.txt that are missing.

# package_needed NAME: not installed, and nothing else stands in for it
package_needed()
{
    local state
    case $1 in
        openjdk-*) ! java_good || return 1 ;;
        maven) ! command -v mvn >/dev/null || return 1 ;;
    esac
    state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) || true
    [[ $state != installed ]]
}

# packages_missing KIND...: prints the missing ones of these kinds
packages_missing()
{
    local kind name rest
    while read -r kind name rest; do
        if [[ " $* " == *" $kind "* && -n $rest ]] && package_needed "$name"; then
            printf '%s\n' "$name"
        fi
    done < <(grep -v '^#' "$LOCAL_DIR/packages.txt")
}

apt_run()
{
    local -a as_root=()
    if ((EUID != 0)); then
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -y -q --no-install-recommends "$@"
}

packages_install()
{
    local log=$TOC_HOME/log/packages.log
    local -a missing
    command -v dpkg-query >/dev/null ||
        die "this is no Debian: install what packages.txt lists, then --no-install"
    mapfile -t missing < <(packages_missing "$@")
    ((${#missing[@]} > 0)) || return 0
    if [[ -n $OPT_NO_INSTALL ]]; then
        warn "missing packages: ${missing[*]}"
        die "install them, or run without --no-install"
    fi
    say "installing Debian packages: ${missing[*]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            die "neither root nor sudo: install them, then run this again"
        # asks for the password now, not while its output is in the log
        sudo -v || die "sudo refused: install them, then run this again"
    fi
    if ! run_shown "apt-get install" "$log" apt_run install "${missing[@]}"; then
        say "refreshing the list of packages"
        run_shown "apt-get update" "$log" apt_run update || true
        run_shown "apt-get install" "$log" apt_run install "${missing[@]}" || {
            show_log_end "$log"
            die "apt-get could not install: ${missing[*]}"
        }
    fi
    say "installed ${#missing[@]} packages"
}
