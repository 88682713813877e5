package status

import (
	"github.com/deckhouse/system-s3/lib/plan"
)

// advice is what to do about a reason, besides what its message says, and what to type to look closer.
type advice struct{ do, command string }

const (
	podsCommand    = "kubectl -n d8-system-s3 get pods -o wide"
	logCommand     = "kubectl -n d8-system-s3 logs deployment/controller"
	nodesCommand   = "kubectl get nodes --show-labels"
	classesCommand = "kubectl get storageclass"
	claimsCommand  = "kubectl -n d8-system-s3 describe pvc"
	reasonsPage    = "The page “Data plane” of the documentation has every reason with what to do."
)

var advices = map[string]advice{
	plan.ReasonDegraded:            {"Bring back the node that the message names. Until then do not take another one away.", podsCommand},
	plan.ReasonQuorumLost:          {"Bring back the nodes that the message names. The data is where it was; do not delete any volume.", podsCommand},
	plan.ReasonNoStorageClass:      {"Set storageClass in ModuleConfig system-s3 to a class that exists, or make a class the default one.", classesCommand},
	plan.ReasonStarting:            {"Wait a few minutes. If it lasts, look at what the message names.", podsCommand},
	plan.ReasonLayoutFailed:        {"Take one of the ways out in the message.", nodesCommand},
	plan.ReasonStateUnreadable:     {"Put the object that the message names back from a backup. Until then the store is left as it is.", logCommand},
	plan.ReasonPlacementBlocked:    {"Give the role to more nodes, add nodes to the tier, or set highAvailability: false.", nodesCommand},
	plan.ReasonReplicaPinned:       {"Bring back the node that the volume is tied to; the data is whole on its disk.", podsCommand},
	plan.ReasonExhausted:           {"Volumes grow by themselves if their class allows it. If they do not grow soon enough, delete objects.", claimsCommand},
	plan.ReasonExpansionNotAllowed: {"Allow expansion in the StorageClass, lower the sizes of SystemBuckets, or delete objects.", classesCommand},
	plan.ReasonExpansionFailed:     {"Make room in the storage behind the StorageClass, lower the sizes of SystemBuckets, or delete objects.", claimsCommand},
	plan.ReasonBlocked:             {"Set the setting that the message names back, or leave it: the store goes on as it is.", "kubectl get moduleconfig system-s3 -o yaml"},
}

func adviceFor(reason string) advice {
	if known, ok := advices[reason]; ok {
		return known
	}
	return advice{do: reasonsPage}
}
