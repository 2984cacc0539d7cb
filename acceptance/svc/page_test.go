package svc

import (
	"strings"

	"github.com/oasdiff/yaml"
)

// workflow is what is read of a workflow of GitHub Actions.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct{ Name, Run string }
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
