# SPDX-License-Identifier: Apache-2.0
# fish completion for edgeprofctl, which itself knows what fits.
function __edgeprofctl
	set -l words (commandline -opc) (commandline -ct)
	edgeprofctl --complete $words[2..] 2>/dev/null
	and return
	__fish_complete_path (commandline -ct)
end
complete -c edgeprofctl -f -a '(__edgeprofctl)'
