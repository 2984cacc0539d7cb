package sizes_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
)

func TestMain(m *testing.M) {
	os.Exit(agenttest.Main(m,
		"TestADatabaseThatIsGoneIsForgotten", "TestADatabaseThatTakesTooLong", "TestAHeavyDatabaseHoldsUpNobody",
		"TestAReplacedDatabaseIsForgotten", "TestAnAccountWithManyFilesHoldsUpNobody", "TestAnswersComeInParts",
		"TestDatabasesWithoutAnAccountShareNothing", "TestOnlyWhatMayHaveChangedIsMeasured",
		"TestWhatCannotBeMeasuredStaysDue",
	))
}
