package platform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// rulesKey holds the CEL rules of one level of a Deckhouse schema.
const rulesKey = "x-deckhouse-validations"

var (
	errBadRule = errors.New("each entry of " + rulesKey + " needs an expression and a message")
	errNotBool = errors.New("the expression does not answer true or false")
)

// rules is the place where rules are checked: the value there and, on an update, the
// value that was there before.
type rules struct {
	path string
	self any
	old  any
}

// checkRules evaluates the rules of the schema and of everything below it, in the
// order of property names so that equal settings give equal answers.
func checkRules(schema *spec.Schema, at rules) error {
	var refusals []error

	if values, ok := at.self.(map[string]any); ok {
		olds, _ := at.old.(map[string]any)

		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			value, present := values[name]
			if !present {
				continue
			}

			property := schema.Properties[name]
			below := rules{path: at.path + "." + name, self: value, old: olds[name]}
			refusals = append(refusals, checkRules(&property, below))
		}
	}

	entries, err := rulesOf(schema)
	if err != nil {
		return fmt.Errorf("%s: %w", at.path, err)
	}

	for _, entry := range entries {
		refusals = append(refusals, at.check(entry))
	}

	return errors.Join(refusals...)
}

// rule is one entry of x-deckhouse-validations.
type rule struct {
	expression, message string
}

func rulesOf(schema *spec.Schema) ([]rule, error) {
	raw, present := schema.Extensions[rulesKey]
	if !present {
		return nil, nil
	}

	list, ok := raw.([]any)
	if !ok {
		return nil, errBadRule
	}

	entries := make([]rule, 0, len(list))

	for _, item := range list {
		fields, _ := item.(map[string]any)
		expression, _ := fields["expression"].(string)
		message, _ := fields["message"].(string)

		if expression == "" || message == "" {
			return nil, errBadRule
		}

		entries = append(entries, rule{expression: expression, message: message})
	}

	return entries, nil
}

// check evaluates one rule. A rule that speaks of oldSelf waits for an old value; one
// that asks for an absent key is skipped.
func (at rules) check(entry rule) error {
	program, transition, err := compile(entry.expression)
	if err != nil {
		return fmt.Errorf("%s: %w", at.path, err)
	}

	if transition && at.old == nil {
		return nil
	}

	input, err := at.input()
	if err != nil {
		return err
	}

	answer, _, err := program.Eval(input)
	if err != nil && strings.Contains(err.Error(), "no such key:") {
		return nil
	}

	if err != nil {
		return fmt.Errorf("%s: evaluate rule %q: %w", at.path, entry.expression, err)
	}

	holds, ok := answer.Value().(bool)
	if !ok {
		return fmt.Errorf("%s: evaluate rule %q: %w", at.path, entry.expression, errNotBool)
	}

	if !holds {
		return &RefusalError{Reason: at.path + ": " + entry.message}
	}

	return nil
}

// compile makes a rule ready to evaluate and tells whether it speaks of oldSelf.
// Numbers are doubles, as on the platform.
func compile(expression string) (cel.Program, bool, error) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType))
	if err != nil {
		return nil, false, fmt.Errorf("prepare rules: %w", err)
	}

	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, false, fmt.Errorf("compile rule %q: %w", expression, issues.Err())
	}

	program, err := env.Program(ast)
	if err != nil {
		return nil, false, fmt.Errorf("prepare rule %q: %w", expression, err)
	}

	return program, mentionsOld(ast), nil
}

func (at rules) input() (map[string]any, error) {
	self, err := structpb.NewValue(at.self)
	if err != nil {
		return nil, fmt.Errorf("%s: read value: %w", at.path, err)
	}

	old, err := structpb.NewValue(at.old)
	if err != nil {
		return nil, fmt.Errorf("%s: read old value: %w", at.path, err)
	}

	return map[string]any{"self": self, "oldSelf": old}, nil
}

func mentionsOld(ast *cel.Ast) bool {
	found := celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.IdentKind && e.AsIdent() == "oldSelf"
	})

	return len(found) > 0
}
