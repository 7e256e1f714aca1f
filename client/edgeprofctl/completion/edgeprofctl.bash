# SPDX-License-Identifier: Apache-2.0
# bash completion for edgeprofctl, which itself knows what fits.
_edgeprofctl() {
	local answer current=${COMP_WORDS[COMP_CWORD]}
	answer=$(edgeprofctl --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	local status=$?
	COMPREPLY=()
	if [[ -n $answer ]]; then
		mapfile -t COMPREPLY < <(cut -f 1 <<<"$answer")
	fi
	if [[ $status == 1 ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${current#=}")
	fi
}

complete -F _edgeprofctl edgeprofctl
