package serve

import (
	"strings"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Path parameters that are no UUIDs.
const (
	FilenameParameter = "filename"
	LoginParameter    = "login"
)

// checkParameter decides whether a path parameter is well formed: VALIDATION_ERROR, or INVALID_BACKUP_FILENAME for a file name.
// A login is a name: one that the database does not have is not found, whatever it looks like.
func checkParameter(name, value string) error {
	switch name {
	case FilenameParameter:
		_, err := backup.ParseFilename(value)
		return err
	case LoginParameter:
		return nil
	}
	if _, err := id.Parse[string](value); err != nil {
		return fault.Invalid(name, "must be a lowercase UUID")
	}
	return nil
}

// Parameters lists the parameters of the route's path in their order.
func (route *Route) Parameters() (names []string) {
	for segment := range strings.SplitSeq(route.Path, "/") {
		if name, ok := parameterName(segment); ok {
			names = append(names, name)
		}
	}
	return names
}

func parameterName(segment string) (string, bool) {
	if len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}' {
		return segment[1 : len(segment)-1], true
	}
	return "", false
}

// fiberPath writes {id} as :id.
func fiberPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// matches reports whether a request's path is one of the pattern's.
func matches(pattern, path string) bool {
	for {
		p, patternRest, more := strings.Cut(pattern, "/")
		s, pathRest, follows := strings.Cut(path, "/")
		if _, free := parameterName(p); p != s && (!free || s == "") {
			return false
		}
		if !more || !follows {
			return more == follows
		}
		pattern, path = patternRest, pathRest
	}
}
