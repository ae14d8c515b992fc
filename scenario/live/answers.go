package live

import (
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/store/embedded"
)

// answerTime is how long an answer about a scenario may take. Only the one who asks waits for
// it: on a busy machine answers are later, and neither shorter nor refused.
const answerTime = 24 * time.Hour

func apiConfig() api.Config {
	c := api.DefaultConfig()
	c.RequestTimeout = answerTime
	return c
}

func storeConfig() embedded.Config {
	c := embedded.DefaultConfig()
	c.QueryTime = answerTime
	return c
}
