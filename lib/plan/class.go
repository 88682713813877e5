package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// classWays are the ways out of having no StorageClass.
const classWays = "set storageClass in ModuleConfig system-s3, or modules.storageClass in ModuleConfig global, or make a StorageClass the default one"

// classChoice is the StorageClass that is wanted, and why, or why it cannot be had.
type classChoice struct {
	name string // empty when nobody asks for one
	why  string
	// asks is who asks for the class, as the subject of a sentence.
	asks    string
	problem string
}

// wantedClass is the order of E1: the module's setting, the platform's, the default class.
func wantedClass(c Cluster, s Settings) classChoice {
	switch {
	case s.StorageClass != "":
		return namedClass(c, s.StorageClass, "the setting storageClass in ModuleConfig system-s3")
	case s.GlobalStorageClass != "":
		return namedClass(c, s.GlobalStorageClass, "the setting modules.storageClass in ModuleConfig global")
	}
	class, ok := defaultClass(c.Classes)
	if !ok {
		return classChoice{problem: "The cluster has no default StorageClass and the settings name none: " + classWays + "."}
	}
	return classChoice{
		name: class.Name,
		asks: "the cluster, by its default class,",
		why:  fmt.Sprintf("StorageClass %s, the default one of the cluster.%s", class.Name, bindingWarning(class)),
	}
}

func namedClass(c Cluster, name, asks string) classChoice {
	class, ok := c.class(name)
	if !ok {
		return classChoice{name: name, asks: asks, problem: fmt.Sprintf("StorageClass %s, named by %s, does not exist: create it, or %s.", name, asks, classWays)}
	}
	return classChoice{name: name, asks: asks, why: fmt.Sprintf("StorageClass %s, by %s.%s", name, asks, bindingWarning(class))}
}

// bindingWarning says what Immediate binding means for a replica (E2).
func bindingWarning(class StorageClass) string {
	if !class.Immediate {
		return ""
	}
	return fmt.Sprintf(" StorageClass %s has volumeBindingMode Immediate, not WaitForFirstConsumer: a replica is tied to wherever its volume landed.", class.Name)
}

// defaultClass is the one Kubernetes would take: of several the newest, then the first by name.
func defaultClass(classes []StorageClass) (StorageClass, bool) {
	marked := slices.DeleteFunc(slices.Clone(classes), func(s StorageClass) bool { return !s.Default })
	if len(marked) == 0 {
		return StorageClass{}, false
	}
	return slices.MinFunc(marked, func(a, b StorageClass) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.Name, b.Name))
	}), true
}

// keptClass keeps the class of an existing plane, and says so when the one that is wanted cannot be had.
func keptClass(c Cluster, o ObservedPlane, s Settings) kept {
	want := wantedClass(c, s)
	if want.name == o.StorageClass && want.problem == "" {
		return kept{why: want.why}
	}
	k := kept{why: fmt.Sprintf("StorageClass %s, as created.", o.StorageClass)}
	if class, ok := c.class(o.StorageClass); ok {
		k.why += bindingWarning(class)
	} else {
		k.why += " It does not exist any more: volumes that are there go on, new ones cannot be made."
	}
	if want.name != "" && want.name != o.StorageClass {
		k.problem = want.problem
	}
	return k
}
