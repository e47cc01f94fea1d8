"""The study `softmax-convergence`: tangent kernels, Table 1 and the rates of Cao et al. 2024."""
