# bash completion for edgeprofctl. Names of metrics, apps and sources come from the daemon, when it
# answers at once.

_edgeprofctl_ask() {
	edgeprofctl --timeout 300ms "$@" 2>/dev/null
}

# compgen -W expands what it gets: only bytes of names may come through.
_edgeprofctl_metrics() {
	_edgeprofctl_ask metrics | grep -x '[A-Za-z0-9_./-]*'
}

_edgeprofctl_names() {
	_edgeprofctl_ask "$1" -j "${@:3}" | grep -o "\"$2\":\"[A-Za-z0-9_.-]*\"" | cut -d '"' -f 4 | sort -u
}

_edgeprofctl() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs="status snapshot sensors stages frames report apps ps power history trace record alerts rules ack silence test-alert events watch mark marks source
		metrics self throttle doctor reload parse emit mqtt-latency version help"
	local options="--json --json=pretty --json=short --no-pager --color=auto --color=always
		--color=never --socket --timeout --help --version"
	local verb="" word words=""
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		for verb in $verbs; do
			[[ $verb == "$word" ]] && break 2
		done
		verb=""
	done
	COMPREPLY=()
	case $previous in
	--socket | -o | --output | --config)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--format)
		mapfile -t COMPREPLY < <(compgen -W "chrome csv json" -- "$current")
		return
		;;
	--sensors)
		mapfile -t COMPREPLY < <(compgen -W "$(_edgeprofctl_metrics)" -- "$current")
		return
		;;
	--watch | --unwatch)
		mapfile -t COMPREPLY < <(compgen -W "$(_edgeprofctl_names ps name)" -- "$current")
		return
		;;
	--kind)
		words="alert silenced hold mark app source clock daemon throttle"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
		;;
	--aggregate)
		mapfile -t COMPREPLY < <(compgen -W "mean min max count" -- "$current")
		return
		;;
	--level)
		mapfile -t COMPREPLY < <(compgen -W "info warning critical" -- "$current")
		return
		;;
	--app)
		mapfile -t COMPREPLY < <(compgen -W "$(_edgeprofctl_names stages app --all)" -- "$current")
		return
		;;
	esac
	case $verb in
	"" | help) words="$verbs" ;;
	sensors | metrics | watch | history) words="$(_edgeprofctl_metrics)" ;;
	stages | frames | report | marks | trace) words="$(_edgeprofctl_names frames app --all)" ;;
	record)
		words="now list show export"
		if [[ $previous == show || $previous == export ]]; then
			words="$(_edgeprofctl_names record name)"
		fi
		;;
	source)
		words="list enable disable"
		if [[ $previous == enable || $previous == disable ]]; then
			words="$(_edgeprofctl_names source name)"
		fi
		;;
	rules | ack | silence) words="$(_edgeprofctl_names rules rule)" ;;
	test-alert) words="info warning critical" ;;
	parse)
		words="tegrastats"
		if [[ $previous == tegrastats ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
		;;
	esac
	case $verb in
	sensors) options+=" --all --wide" ;;
	status | apps) options+=" --all" ;;
	history) options+=" --since --until --step --max-points --csv --plot --table --around --span --lines --boots --aggregate" ;;
	record) options+=" -o --output --format --sensors" ;;
	trace) options+=" -o --output --since --until --sensors --format" ;;
	alerts) options+=" --all --check --check=critical --recent" ;;
	ack | silence) options+=" --note --remove" ;;
	test-alert) options+=" --note" ;;
	events) options+=" --follow --lines --since --until --kind --level" ;;
	watch) options+=" --interval --count --all" ;;
	mark | snapshot) options+=" --app" ;;
	ps) options+=" --watch --unwatch --name --threads" ;;
	frames) options+=" --span --method --throttle --slow --recent --all --run --all-runs" ;;
	report) options+=" --run --all-runs" ;;
	stages) options+=" --tree --by --span --method --throttle --wide --all --run --all-runs" ;;
	source) options+=" --interval" ;;
	emit) options+=" --app --frame --unit --time" ;;
	mqtt-latency) options+=" --host --port --config --key --count --publish --interval" ;;
	esac
	if [[ $current == -* ]]; then
		words="$options"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _edgeprofctl edgeprofctl
