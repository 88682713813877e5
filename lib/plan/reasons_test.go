package plan

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// update rewrites the tables of reasons in the documentation: go test ./lib/plan -update.
var update = flag.Bool("update", false, "rewrite the tables of reasons in docs")

// explained is a reason as the documentation explains it.
type explained struct {
	condition, reason string
	ok                bool
	means, do         string
	meansRU, doRU     string
}

const (
	nothing   = "Nothing."
	nothingRU = "Ничего."
)

// explanations are all reasons of the conditions on Module/system-s3, in the order of the page.
var explanations = []explained{
	{
		"StorageReady", ReasonReady, true, "The store serves all requests.", nothing,
		"Хранилище обслуживает все запросы.", nothingRU,
	},
	{
		"StorageReady", ReasonDegraded, true, "The store serves all requests with less redundancy: a replica of three is not up, or is still being filled from the others.",
		"Bring back the node that the message names; wait until the replica is filled.",
		"Хранилище обслуживает все запросы, но с меньшей избыточностью: одна из трёх реплик не работает или ещё наполняется из остальных.",
		"Верните узел, названный в сообщении; дождитесь наполнения реплики.",
	},
	{
		"StorageReady", ReasonWaitingForFirstBucket, false, "There is no SystemBucket yet, so there is no store. Settings may change freely.",
		nothing, "Ещё нет ни одного SystemBucket, поэтому нет и хранилища. Настройки можно свободно менять.", nothingRU,
	},
	{
		"StorageReady", ReasonNoStorageClass, false, "There are SystemBuckets, but no StorageClass for the volumes.",
		"Set `storageClass`, or `modules.storageClass` in ModuleConfig `global`, to a class that exists, or make a class the default one.",
		"SystemBucket есть, но для томов нет StorageClass.",
		"Укажите существующий класс в `storageClass` или в `modules.storageClass` ModuleConfig `global` либо сделайте какой-нибудь класс классом по умолчанию.",
	},
	{
		"StorageReady", ReasonStarting, false, "The store is being made or is coming up; the message says what it waits for.",
		"Wait; if it lasts, look at what the message names.",
		"Хранилище создаётся или запускается; в сообщении сказано, чего оно ждёт.", "Подождите; если это затянулось, проверьте то, что названо в сообщении.",
	},
	{
		"StorageReady", ReasonLayoutFailed, false, "A new store cannot start: Garage accepts no layout with fewer nodes than copies, or refuses it for the reason in the message.",
		"One of the ways out in the message.",
		"Новое хранилище не может запуститься: Garage не принимает раскладку, в которой узлов меньше, чем копий, либо отклоняет её по причине из сообщения.",
		"Один из выходов, названных в сообщении.",
	},
	{
		"StorageReady", ReasonQuorumLost, false, "Fewer replicas are up than reads and writes need: two of three, or the only one. The store is unavailable, its data is where it was.",
		"Bring back the nodes that the message names.",
		"Работает меньше реплик, чем нужно для чтения и записи: двух из трёх или единственной. Хранилище недоступно, данные остаются на месте.",
		"Верните узлы, названные в сообщении.",
	},
	{
		"StorageReady", ReasonStateUnreadable, false, "Something that was decided once, such as the secrets of the store, exists and cannot be read, or is gone. The store is left as it is.",
		"Put the named object back from a backup.",
		"То, что было решено однажды (например, секреты хранилища), существует, но не читается, либо исчезло. Хранилище остаётся как есть.",
		"Восстановите названный объект из резервной копии.",
	},
	{
		"PlacementReady", ReasonPlaced, true, "Each replica has a node of its own.", nothing,
		"У каждой реплики есть свой узел.", nothingRU,
	},
	{
		"PlacementReady", ReasonPlacementBlocked, false, "The tier has fewer nodes than there are replicas, or the scheduler refuses some of them. The replicas that have a node run, the others are Pending.",
		"Give the label `node-role.deckhouse.io/system-s3` to as many nodes as the message says, add nodes to the tier, or set `highAvailability: false`.",
		"В ступени меньше узлов, чем реплик, либо планировщик не пускает на них реплики. Реплики, которым хватило узлов, работают, остальные в состоянии Pending.",
		"Назначьте метку `node-role.deckhouse.io/system-s3` стольким узлам, сколько названо в сообщении, добавьте узлы в ступень или задайте `highAvailability: false`.",
	},
	{
		"PlacementReady", ReasonRelocating, false, "A replica moves: its node left the tier or is gone, or its volume is damaged. The message says which, from where to where, and what it waits for; one replica moves at a time, ten minutes apart.",
		"Wait; leave the nodes and disks of the other replicas alone meanwhile. See [Replicas](REPLICAS.md).",
		"Реплика переезжает: её узел выбыл из ступени или исчез либо повреждён её том. В сообщении сказано, какая, откуда и куда и чего она ждёт; реплики переезжают по одной, не чаще чем раз в десять минут.",
		"Подождите и не трогайте тем временем узлы и диски остальных реплик. См. [Реплики](REPLICAS.ru.md).",
	},
	{
		"PlacementReady", ReasonReplicaPinned, false, "A replica stays with its volume: the node that the volume is tied to is away for now, or there is no proof of another copy of its data. The message says where the data is.",
		"What the message says: bring the node back, let it take Pods, give it the label, or delete the Node if it is lost for good. See [Replicas](REPLICAS.md).",
		"Реплика остаётся при своём томе: узел, к которому он привязан, пока недоступен, либо не доказано, что у данных есть другая копия. В сообщении сказано, где данные.",
		"То, что названо в сообщении: верните узел, разрешите на нём размещение, верните метку или удалите Node, если он потерян навсегда. См. [Реплики](REPLICAS.ru.md).",
	},
	{
		"CapacityReady", ReasonEnough, true, "The volumes are as large as they have to be.", nothing,
		"Тома такого размера, как нужно.", nothingRU,
	},
	{
		"CapacityReady", ReasonGrowing, true, "The volumes grow, one after the other, while the store is used.", nothing,
		"Тома увеличиваются по одному, хранилище при этом работает.", nothingRU,
	},
	{
		"CapacityReady", ReasonExhausted, false, "Less than 5 % of a volume is free. Volumes grow by a step of 5 GiB, and by the next one if that is not enough.",
		"Wait; delete objects if the volumes do not grow soon enough.",
		"На томе свободно меньше 5 %. Тома увеличиваются на шаг в 5 ГиБ и, если этого мало, на следующий.",
		"Подождите; если тома растут недостаточно быстро, удалите объекты.",
	},
	{
		"CapacityReady", ReasonExpansionNotAllowed, false, "Volumes have to grow and their StorageClass does not allow it, or does not exist any more. Before a volume is full, uploads are refused with `InsufficientStorage` (507); reads and deletes go on.",
		"Allow it with `allowVolumeExpansion: true` if the storage can do it, lower the sizes of SystemBuckets, or delete objects.",
		"Тома должны вырасти, но StorageClass этого не разрешает либо его больше нет. Прежде чем том заполнится, загрузки начнут отклоняться с `InsufficientStorage` (507); чтение и удаление работают.",
		"Разрешите рост через `allowVolumeExpansion: true`, если хранилище это умеет, уменьшите размеры SystemBucket или удалите объекты.",
	},
	{
		"CapacityReady", ReasonExpansionFailed, false, "The StorageClass allows growth and its storage fails to do it; the message has its own words. It is tried again.",
		"Make room in that storage, lower the sizes of SystemBuckets, or delete objects.",
		"StorageClass разрешает рост, но его хранилище не справляется; его слова приведены в сообщении. Попытки повторяются.",
		"Освободите место в этом хранилище, уменьшите размеры SystemBucket или удалите объекты.",
	},
	{
		"MigrationReady", ReasonNotNeeded, true, "The store has the replicas and the StorageClass that are asked for.", nothing,
		"У хранилища то число реплик и тот StorageClass, которые заданы.", nothingRU,
	},
	{
		"MigrationReady", ReasonPreparing, true, "Three replicas are asked for, and two more are made ready beside the only one; or another StorageClass is asked for, and a second plane is made ready beside the store. The store goes on serving. It can be called back.",
		"Wait; the message says what is awaited.",
		"Заданы три реплики, и рядом с единственной готовятся ещё две; либо задан другой StorageClass, и рядом с хранилищем готовится второй комплект реплик. Хранилище продолжает работать. Это можно отменить.",
		"Подождите; в сообщении сказано, чего ждут.",
	},
	{
		"MigrationReady", ReasonSwitching, true, "All replicas are restarted at once with another number of copies, or the store goes over to its new plane. Clients wait for some seconds.",
		"Wait; if it lasts, look at what `StorageReady` names.",
		"Все реплики разом перезапускаются с другим числом копий, либо хранилище переходит на новый комплект реплик. Клиенты ждут несколько секунд.",
		"Подождите; если это затянулось, проверьте то, что названо в `StorageReady`.",
	},
	{
		"MigrationReady", ReasonCopying, true, "The store has three replicas and serves; the new ones are being filled, and until then the old one has the only copy of some data. Or the objects are copied to another StorageClass; the message says how many.",
		"Wait, and leave the nodes of the old replicas alone. See [Changing the StorageClass](MIGRATION.md).",
		"У хранилища три реплики, и оно работает; новые наполняются, и до тех пор единственная копия части данных лежит на прежней. Либо объекты копируются на другой StorageClass; в сообщении сказано, сколько их.",
		"Подождите и не трогайте узлы прежних реплик. См. [Смена StorageClass](MIGRATION.ru.md).",
	},
	{
		"MigrationReady", ReasonVerifying, true, "One replica is asked for: it is proven that the one that stays holds everything, before and after the restart, which can be called back until the volumes of the others are deleted. Or the copies on another StorageClass are read back and compared.",
		"Wait; if it lasts, look at what the message names, or call it back with the setting that it names.",
		"Задана одна реплика: до и после перезапуска доказывается, что на той, которая остаётся, есть всё; это можно отменить, пока не удалены тома остальных. Либо копии на другом StorageClass читаются и сверяются.",
		"Подождите; если это затянулось, проверьте то, что названо в сообщении, или верните названную в нём настройку.",
	},
	{
		"MigrationReady", ReasonFinished, true, "What stays holds everything: the other replicas, or the plane on the old StorageClass, and their volumes go.", nothing,
		"Всё лежит там, где должно остаться; остальные реплики или комплект реплик на прежнем StorageClass удаляются вместе с томами.", nothingRU,
	},
	{
		"MigrationReady", ReasonAborting, true, "A move to another StorageClass was called back: what was made for it is deleted. The store has not changed.", nothing,
		"Переход на другой StorageClass отменён: созданное для него удаляется. Хранилище не изменилось.", nothingRU,
	},
	{
		"MigrationReady", ReasonBlocked, false, "Three replicas or another StorageClass are asked for, and there is no place for them, or the class does not exist or binds volumes at once (`Immediate`). The message names the setting, the numbers and the ways out; the store goes on as it is.",
		"One of the ways out in the message.",
		"Заданы три реплики или другой StorageClass, но для них нет места, либо класса нет или он привязывает тома сразу (`Immediate`). В сообщении названы настройка, числа и выходы; хранилище работает как прежде.",
		"Один из выходов, названных в сообщении.",
	},
}

// later are reasons that have a name already and that nothing tells yet.
var later []string

// declared are the values of the constants Reason... of this package.
func declared(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "plan.go", nil, 0)
	require.NoError(t, err)
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		found = append(found, value)
		return true
	})
	return found
}

func TestEveryReasonIsExplained(t *testing.T) {
	all := append([]string{}, later...)
	known := map[string]bool{}
	for _, e := range explanations {
		all = append(all, e.reason)
		known[fmt.Sprint(e.condition, e.reason, e.ok)] = true
	}
	require.ElementsMatch(t, declared(t), all, "explain the reason in reasons_test.go")
	forAnyStory(t, func(t *testing.T, _ *rand.Rand, s story) {
		p := s.decide()
		for condition, v := range map[string]Verdict{
			"StorageReady": p.Storage, "PlacementReady": p.Placement, "CapacityReady": p.Capacity, "MigrationReady": p.Migration,
		} {
			require.True(t, known[fmt.Sprint(condition, v.Reason, v.OK)], "%s %+v", condition, v)
		}
	})
}

// table is what the page shows between its marks.
func table(head string, row func(explained) (means, do string)) string {
	var b strings.Builder
	b.WriteString(head)
	for _, e := range explanations {
		status := "False"
		if e.ok {
			status = "True"
		}
		means, do := row(e)
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", e.condition, e.reason, status, means, do)
	}
	return b.String()
}

func TestDocumentationKnowsTheReasons(t *testing.T) {
	const begin, end = "<!-- reasons: written by `go test ./lib/plan -update` -->\n\n", "\n<!-- /reasons -->"
	pages := map[string]string{
		"../../docs/DATA_PLANE.md": table("| condition | reason | status | what it means | what to do |\n|---|---|---|---|---|\n",
			func(e explained) (string, string) { return e.means, e.do }),
		"../../docs/DATA_PLANE.ru.md": table("| условие | причина | статус | что это значит | что делать |\n|---|---|---|---|---|\n",
			func(e explained) (string, string) { return e.meansRU, e.doRU }),
	}
	for path, want := range pages {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		before, rest, found := strings.Cut(string(page), begin)
		require.True(t, found, "%s has no place for the table", path)
		got, after, found := strings.Cut(rest, end)
		require.True(t, found, "%s has no end of the table", path)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
			continue
		}
		require.Equal(t, want, got, "the table is stale: go test ./lib/plan -update")
	}
}
