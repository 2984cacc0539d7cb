package svc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oasdiff/yaml"

	"github.com/pgherd/pgherd/acceptance/check"
)

// workflow is what is read of a workflow of GitHub Actions.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Env   map[string]string
		Steps []step
	}
}

type step struct {
	Name, Run string
	Env       map[string]string
}

// What the code of a pull request does in its step, it does without the key.
func TestTheKeyIsOfTheStepsThatCallSvc(t *testing.T) {
	page := string(check.Must(os.ReadFile(filepath.Join("..", "..", "docs", "use", "ci.md")))(t))
	_, block, _ := strings.Cut(page, "\n```yaml\n")
	block, _, _ = strings.Cut(block, "```\n")
	var w workflow
	check.Must(yaml.Unmarshal([]byte(block), &w, yaml.DecodeOpts{}))(t)
	if len(w.Jobs) == 0 {
		t.Fatal("the page shows no workflow")
	}
	const key = "SVC_API_KEY"
	for name, job := range w.Jobs {
		if w.Env[key]+job.Env[key] != "" {
			t.Errorf("all steps of the job %s have the key", name)
		}
		for _, s := range job.Steps {
			if calls := strings.Contains(s.Run, "svc "); calls != (s.Env[key] != "") {
				t.Errorf("the step %q calls svc: %v; its variables are %v", s.Name, calls, s.Env)
			}
		}
	}
}

// shellOf returns the shell that a page shows, by file name: "open-the-preview.step" for the step of that name in a workflow, and
// "open-the-preview.sh" for a block of shell that begins with the comment.
func shellOf(page string) (files map[string]string, err error) {
	files = map[string]string{}
	for {
		_, rest, found := strings.Cut(page, "\n```")
		if !found {
			return files, nil
		}
		kind, rest, _ := strings.Cut(rest, "\n")
		block, rest, _ := strings.Cut(rest, "```\n")
		page = "\n" + rest
		switch kind {
		case "sh":
			first, _, _ := strings.Cut(block, "\n")
			files[fileName(strings.TrimPrefix(first, "# "))+".sh"] = block
		case "yaml":
			var w workflow
			if _, err := yaml.Unmarshal([]byte(block), &w, yaml.DecodeOpts{}); err != nil {
				return nil, err
			}
			for _, job := range w.Jobs {
				for _, step := range job.Steps {
					files[fileName(step.Name)+".step"] = step.Run
				}
			}
		}
	}
}

func fileName(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }
