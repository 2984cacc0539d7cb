package pgbackrest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/agent/archive"
)

// infoFile is what an archive says of the server that it is of.
const infoFile = "archive/" + stanza + "/archive.info"

var (
	versionPattern = regexp.MustCompile(`(?m)^db-version="(\d+)"$`)
	numberPattern  = regexp.MustCompile(`(?m)^db-id=(\d+)$`)
)

// origin is which server an archive is of, according to its infoFile: its major version, and the folder of its WAL.
func origin(info []byte) (major int, folder string, err error) {
	version, number := versionPattern.FindSubmatch(info), numberPattern.FindSubmatch(info)
	if version == nil || number == nil {
		return 0, "", fmt.Errorf("%s does not say of which version the server is", infoFile)
	}
	major, err = strconv.Atoi(string(version[1]))
	return major, fmt.Sprintf("archive/%s/%d-%s", stanza, major, number[1]), err
}

// origin asks the archive for it.
func (e *Engine) origin(ctx context.Context) (major int, folder string, err error) {
	info, err := e.run(ctx, "repo-get", infoFile)
	if err != nil {
		return 0, "", err
	}
	return origin(info)
}

// Major is the major version of the server that the archive is of.
func (e *Engine) Major(ctx context.Context) (int, error) {
	major, _, err := e.origin(ctx)
	return major, err
}

// Timelines implements archive.Engine.
func (e *Engine) Timelines(ctx context.Context) (list []archive.Timeline, err error) {
	_, folder, err := e.origin(ctx)
	if err != nil {
		return nil, err
	}
	files, err := e.list(ctx, folder)
	for name := range files {
		if t, ok := archive.ParseHistoryName(path.Base(name)); ok {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return list, err
}

// History implements archive.Engine.
func (e *Engine) History(ctx context.Context, t archive.Timeline) ([]byte, error) {
	_, folder, err := e.origin(ctx)
	if err != nil {
		return nil, err
	}
	return e.run(ctx, "repo-get", folder+"/"+t.History())
}

// Opens returns an archive.ErrKey where the passphrase is not that of the archive. The program does not always tell: what does
// not open may look like anything else.
func (e *Engine) Opens(ctx context.Context) error {
	text, err := e.run(ctx, "repo-get", infoFile)
	switch {
	case err != nil && e.IsAway(err):
		return err
	case err != nil || !bytes.Contains(text, []byte("\n[db]\n")):
		return archive.ErrKey
	}
	return nil
}

// Folders are the names of the folders in the repository: where it is one of several servers, each has one.
func (e *Engine) Folders(ctx context.Context) (list []string, err error) {
	files, err := e.list(ctx)
	for name, f := range files {
		if f.Type == "path" && name != "." {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, err
}

// listed is an entry of a folder in the repository.
type listed struct {
	Type string `json:"type"`
	Time int64  `json:"time"`
}

// list lists a folder in the repository by the names in it; one that is not there has nothing.
func (e *Engine) list(ctx context.Context, args ...string) (files map[string]listed, err error) {
	text, err := e.run(ctx, "repo-ls", append([]string{"--output=json"}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &files); err != nil {
		return nil, fmt.Errorf("pgbackrest repo-ls: %w", err)
	}
	return files, nil
}

// RestoreWhole implements archive.Engine.
func (e *Engine) RestoreWhole(ctx context.Context, backup, dir string, tell func(percent int)) error {
	return e.runHeard(ctx, func(line string) {
		if m := donePattern.FindStringSubmatch(line); m != nil {
			percent, _ := strconv.Atoi(m[1]) // the pattern holds
			tell(percent)
		}
	}, "restore", "--set="+backup, "--pg1-path="+dir, "--type=none", "--delta", "--force", "--log-level-console=detail")
}

// donePattern is how the program says how much is done.
var donePattern = regexp.MustCompile(`, (\d{1,3})(?:\.\d+)?%\)`)
