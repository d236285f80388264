"""What observations say: intervals, distances and tests of fit; numpy, scipy and statsmodels only."""
