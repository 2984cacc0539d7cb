package artifact

import "github.com/pgherd/pgherd/agent/dumpsql"

// exempt lifts the limit on temporary files for the login of a copy, in which indexes are built. The reservation of the copy
// bounds them instead. The login itself cannot set the parameter, nor can any customer's.
func exempt(login string) string {
	return "ALTER ROLE " + dumpsql.QuoteIdentifier(login) + " SET temp_file_limit = -1"
}
