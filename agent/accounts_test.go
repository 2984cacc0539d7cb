package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestAccountsAreReadStrictly(t *testing.T) {
	s := realStack(t)
	for field, body := range map[string]string{
		"databases[0].databaseId": `{"databases":[{"databaseId":"x","accountId":"` + newUUID() + `"}]}`,
		"databases[1].accountId": fmt.Sprintf(`{"databases":[{"databaseId":%q,"accountId":%q},{"databaseId":%q,"accountId":""}]}`,
			newUUID(), newUUID(), newUUID()),
	} {
		status, text, err := s.request(http.MethodPut, "/v1/accounts", []byte(body))
		if err != nil || status != http.StatusBadRequest || !strings.Contains(string(text), field) {
			t.Errorf("%s: %d %s %v", field, status, text, err)
		}
	}
}
