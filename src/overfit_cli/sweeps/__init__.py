"""The machine that plans, trains and stores cells. It knows no paper."""
