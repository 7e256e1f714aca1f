#compdef edgeprofctl
# SPDX-License-Identifier: Apache-2.0
# zsh completion for edgeprofctl, which itself knows what fits.
local answer line code
local -a names shown
answer=$(edgeprofctl --complete "${(@)words[2,CURRENT]}" 2>/dev/null)
code=$?
for line in ${(f)answer}; do
	names+=("${line%%$'\t'*}")
	shown+=("${line/$'\t'/  }")
done
(($#names)) && compadd -d shown -a names
((code == 1)) && _files
